// emulated_backend.h: a checkpoint on the emulated device: numerics `cuda-emulated` (docs/contracts/device.md).
//
// Errors as OpenDeviceBackend; thread: the backend's.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "model/device/device_backend.h"
#include "model/device/emulated_runtime.h"

namespace iha::model {

absl::StatusOr<std::unique_ptr<Backend>> OpenEmulatedBackend(const checkpoint::Checkpoint& checkpoint,
                                                             const NumericsSpec& numerics,
                                                             const EmulatedOptions& options = {});

}  // namespace iha::model
