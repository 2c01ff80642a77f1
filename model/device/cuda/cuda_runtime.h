// cuda_runtime.h: a GPU as a device: one stream, memory in the stream's order, copies through pinned memory.
//
// Memory is cuda_memory.h's: a pool of this runtime's own, or what comes with `fast`. Upload copies into pinned
// pieces and returns; Download waits for the stream. A fault of a launch is found by the first Check or Download after
// it; then every call fails with it. Thread: the backend's, whichever that is at the time. Errors: ResourceExhausted
// (memory, with what is free), Internal (text and name of CUDA's error).
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "model/device/cuda/cuda_device.h"
#include "model/device/cuda/cuda_memory.h"
#include "model/device/device_fast.h"
#include "model/device/device_runtime.h"

namespace iha::model {

// For numerics `fast`: a library's work in the runtime's stream, and the memory that the runtime shares with it.
struct CudaFast {
  std::unique_ptr<CudaMemory> memory;
  std::unique_ptr<DeviceFast> fast;
};
using MakeCudaFast = std::function<absl::StatusOr<CudaFast>(const CudaDevice& device, cudaStream_t stream)>;

absl::StatusOr<std::unique_ptr<DeviceRuntime>> MakeCudaRuntime(const CudaDevice& device,
                                                               const MakeCudaFast& fast = nullptr);

}  // namespace iha::model
