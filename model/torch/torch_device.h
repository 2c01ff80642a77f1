// torch_device.h: device names ("cpu", "cuda", "cuda:N") to Torch devices.
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "absl/status/statusor.h"

namespace iha::model::torch {

// Loads LibTorch's CUDA part at the first CUDA device. Unavailable: no such name, or no such device here.
absl::StatusOr<c10::Device> FindDevice(const std::string& name);

}  // namespace iha::model::torch
