// torch_memory.h: LibTorch's caching allocator as a CUDA runtime's memory, for numerics `fast`.
//
// The backend's arrays and the scratch of LibTorch's own products and attention come from one cache, in the order of
// one stream: what either has freed serves the other. What a recording allocates, of both, comes from a pool that
// nothing else takes from and that LibTorch never empties, as its own graphs have. Thread: the runtime's. Errors:
// ResourceExhausted (LibTorch has given back all that it keeps for nobody, and there is still no memory), Internal
// (LibTorch's line).
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/cuda/CUDAStream.h>

#include <string>

#include "common/errors.h"
#include "model/device/cuda/cuda_memory.h"

namespace iha::model {

// Runs `work`; what LibTorch throws becomes a Status.
template <class Work>
absl::StatusOr<bool> GuardedTorch(const char* what, const Work& work) {
  try {
    return work();
  } catch (const c10::OutOfMemoryError& error) {
    return ResourceExhausted("{}: {}", what, error.what_without_backtrace());
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    return Internal("{}: LibTorch: {}", what, message.substr(0, message.find('\n')));
  } catch (const std::exception& error) {
    return Internal("{}: {}", what, error.what());
  }
}

class TorchMemory final : public CudaMemory {
 public:
  // LibTorch's allocator is open. `recordings`: a new handle of a pool (at::cuda::graph_pool_handle).
  TorchMemory(int index, cudaStream_t stream, c10::MempoolId_t recordings);
  ~TorchMemory() override;

  absl::StatusOr<void*> Allocate(size_t bytes, const char* name) override;
  void Free(void* memory) override;
  std::optional<int64_t> Kept() override;
  absl::Status BeginRecording() override;
  absl::Status EndRecording() override;

  // Work of LibTorch's that may allocate. Outside of recordings LibTorch itself gives back what it keeps before there
  // is no memory; in one it does not, so it is told to, and the work is tried once more.
  template <class Work>
  absl::StatusOr<bool> Run(const char* what, const Work& work) {
    absl::StatusOr<bool> done = GuardedTorch(what, work);
    if (!recording_ || !absl::IsResourceExhausted(done.status())) return done;
    return GiveBack().ok() ? GuardedTorch(what, work) : done;
  }
  const c10::cuda::CUDAStream& stream() const { return stream_; }

 private:
  absl::Status GiveBack();

  const c10::cuda::CUDAStream stream_;
  const c10::MempoolId_t recordings_;
  int64_t begun_ = 0;  // how often: the pool counts who uses it
  bool recording_ = false;
};

}  // namespace iha::model
