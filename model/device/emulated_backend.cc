#include "model/device/emulated_backend.h"

namespace iha::model {

absl::StatusOr<std::unique_ptr<Backend>> OpenEmulatedBackend(const checkpoint::Checkpoint& checkpoint,
                                                             const NumericsSpec& numerics,
                                                             const EmulatedOptions& options) {
  return OpenDeviceBackend(checkpoint, numerics, MakeEmulatedRuntime(options),
                           {.record_decode = options.record_decode});
}

}  // namespace iha::model
