// cuda_memory.h: where a CUDA runtime's memory comes from, in the order of its stream.
//
// Here: a pool of the runtime's own (cudaMallocFromPoolAsync). What is freed is used again by later allocations of the
// stream without waiting, and goes back to the GPU with the pool. Scratch of recordings is not the pool's, as what is
// allocated in the stream's order would become part of the graph: it stays at its addresses and serves the next
// recording. With LibTorch: its caching allocator (torch_memory.h). Thread: the runtime's; its device is current.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace iha::model {

class CudaMemory {
 public:
  // The stream is idle, all that was allocated is freed, and no recording is left.
  virtual ~CudaMemory() = default;
  // At least one byte, aligned to 256. ResourceExhausted: the GPU has no more, also none that is kept here for nobody.
  // Internal: a fault. `name` is a literal, for messages.
  virtual absl::StatusOr<void*> Allocate(size_t bytes, const char* name) = 0;
  virtual void Free(void* memory) = 0;
  // Bytes that are kept for allocations to come, outside of recordings; none: nobody knows.
  virtual std::optional<int64_t> Kept() = 0;
  // Around a recording. What is allocated meanwhile is freed meanwhile, and stays where it is for its replays; no
  // recording runs beside another, so all share it.
  virtual absl::Status BeginRecording() = 0;
  virtual absl::Status EndRecording() = 0;
};

// Of device `index`, whose stream outlives it. Errors: CudaStatus's.
absl::StatusOr<std::unique_ptr<CudaMemory>> MakeCudaPool(int index, cudaStream_t stream);

}  // namespace iha::model
