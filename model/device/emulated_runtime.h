// emulated_runtime.h: the emulator as a device (docs/contracts/simt.md): device memory is heap memory that it watches.
//
// Launches run on the calling thread and are done when they return; what the emulator finds wrong with one comes out of
// Check as Internal with its line.
#pragma once

#include <cstdint>
#include <memory>

#include "model/device/device_runtime.h"

namespace iha::model {

// A schedule of the emulator: no result may depend on it.
struct EmulatedOptions {
  uint64_t seed = 1;
  bool eager_copies = false;
};

std::unique_ptr<DeviceRuntime> MakeEmulatedRuntime(const EmulatedOptions& options);

}  // namespace iha::model
