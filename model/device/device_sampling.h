// device_sampling.h: tokens from logits on a device (token_drawing.h), by SampleGpu.
//
// Thread: the backend's. Errors: the runtime's.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "model/device/device_runtime.h"
#include "model/token_drawing.h"

namespace iha::model {

// Rows of logits on a device, the first n of each ld count.
struct DeviceLogits {
  const float* data = nullptr;
  uint32_t n = 0;
  uint32_t ld = 0;
};

// tokens[i] from row i by draws[i]. Waits for them.
absl::Status DrawOnDevice(DeviceRuntime& runtime, const DeviceLogits& logits, std::span<const RowDraw> draws,
                          std::span<int32_t> tokens);

// logits: [rows.size()][n], rows increasing. One copy for each run of neighbours.
absl::Status DownloadLogits(DeviceRuntime& runtime, const DeviceLogits& device, std::span<const int32_t> rows,
                            std::span<float> logits);

}  // namespace iha::model
