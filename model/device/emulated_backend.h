// emulated_backend.h: a checkpoint on the emulated device: numerics `cuda-emulated`, or `cuda-fast-emulated`
// (docs/contracts/device.md).
//
// Errors as OpenDeviceBackend; thread: the backend's.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "model/device/device_backend.h"
#include "model/device/emulated_runtime.h"

namespace iha::model {

// An H200's: decode steps are cut as they would be there.
inline constexpr uint32_t kEmulatedProcessors = 132;

absl::StatusOr<std::unique_ptr<Backend>> OpenEmulatedBackend(const checkpoint::Checkpoint& checkpoint,
                                                             const NumericsSpec& numerics,
                                                             const EmulatedOptions& options = {});

}  // namespace iha::model
