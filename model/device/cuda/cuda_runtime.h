// cuda_runtime.h: a GPU as a device: one stream, memory in the stream's order, copies through pinned memory.
//
// Memory comes from a pool of this runtime's own (cudaMallocFromPoolAsync): what is freed is used again by later
// allocations of the stream without waiting, and goes back to the GPU with the runtime. Upload copies into pinned
// pieces and returns; Download waits for the stream. A fault of a launch is found by the first Check or Download after
// it; then every call fails with it. Thread: the backend's, whichever that is at the time. Errors: ResourceExhausted
// (memory, with what is free), Internal (text and name of CUDA's error).
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "model/device/cuda/cuda_device.h"
#include "model/device/device_fast.h"
#include "model/device/device_runtime.h"

namespace iha::model {

// For numerics `fast`: what works in the runtime's stream.
using MakeDeviceFast =
    std::function<absl::StatusOr<std::unique_ptr<DeviceFast>>(const CudaDevice& device, cudaStream_t stream)>;

absl::StatusOr<std::unique_ptr<DeviceRuntime>> MakeCudaRuntime(const CudaDevice& device,
                                                               const MakeDeviceFast& fast = nullptr);

}  // namespace iha::model
