// torch_device.h: device names ("cpu", "cuda", "cuda:N") to Torch devices.
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "absl/status/statusor.h"

namespace iha::model::torch {

// Loads LibTorch's CUDA part at the first CUDA device. Unavailable: no such name, or no such device here.
absl::StatusOr<c10::Device> FindDevice(const std::string& name);
// 0 for the CPU, else the compute capability of the GPU: 90 for 9.0. Unavailable: CUDA does not say.
absl::StatusOr<int> ArchitectureOf(c10::Device device);

}  // namespace iha::model::torch
