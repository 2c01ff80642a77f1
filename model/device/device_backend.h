// device_backend.h: a checkpoint on a device behind the Backend contract, composed of the kernels in kernels/*/*_gpu.h
// (docs/contracts/device.md). Weights, activations and cache bf16, sums fp32.
//
// Open uploads and digests the weights (mapped pages are dropped). Errors: FailedPrecondition (a layer without a
// kernel), InvalidArgument (numerics of another backend), those of DeviceWeights and the runtime; the folder is named.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/numerics_spec.h"
#include "model/backend.h"
#include "model/checkpoint/checkpoint.h"
#include "model/device/device_runtime.h"

namespace iha::model {

struct DeviceOptions {
  bool record_decode = true;  // decode_steps.h; else those steps are enqueued as others are
  bool profile = false;       // operations are timed one by one; then no step is recorded
};

absl::StatusOr<std::unique_ptr<Backend>> OpenDeviceBackend(const checkpoint::Checkpoint& checkpoint,
                                                           const NumericsSpec& numerics,
                                                           std::unique_ptr<DeviceRuntime> runtime,
                                                           const DeviceOptions& options = {});

}  // namespace iha::model
