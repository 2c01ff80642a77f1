#include "model/device/emulated_backend.h"

namespace iha::model {

absl::StatusOr<std::unique_ptr<Backend>> OpenEmulatedBackend(const checkpoint::Checkpoint& checkpoint,
                                                             const NumericsSpec& numerics,
                                                             const EmulatedOptions& options) {
  EmulatedOptions device = options;
  if (numerics.fast() && device.processors == 0) device.processors = kEmulatedProcessors;
  return OpenDeviceBackend(checkpoint, numerics, MakeEmulatedRuntime(device),
                           {.record_decode = device.record_decode, .profile = device.clock != nullptr});
}

}  // namespace iha::model
