// emulated_runtime.h: the emulator as a device (docs/contracts/simt.md): device memory is heap memory that it watches.
//
// Launches run on the calling thread and are done when they return; what the emulator finds wrong with one comes out of
// Check as Internal with its line.
#pragma once

#include <cstdint>
#include <memory>

#include "common/clock.h"
#include "model/device/device_runtime.h"

namespace iha::model {

struct EmulatedOptions {
  // A schedule of the emulator: no result may depend on it.
  uint64_t seed = 1;
  bool eager_copies = false;
  // Decode steps are recorded and replayed as on a GPU, else each is enqueued by itself. No bit depends on it either.
  bool record_decode = true;
  int64_t free_bytes = 0;                                   // that the device says it has; 0: it does not say
  uint32_t max_shared_bytes = kernels::kGpuMaxSharedBytes;  // of a block: another GPU's
  // Numerics `fast`: multiprocessors that decode steps are cut for (device_fast.h); 0: exact.
  uint32_t processors = 0;
  // For a profile of operations, which take the time of the emulator; null: none. Must outlive the model.
  const Clock* clock = nullptr;
};

std::unique_ptr<DeviceRuntime> MakeEmulatedRuntime(const EmulatedOptions& options);

}  // namespace iha::model
