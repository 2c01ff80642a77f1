#include <map>
#include <new>

#include "common/errors.h"
#include "common/status_macros.h"
#include "model/device/cuda/cuda_device.h"
#include "model/device/cuda/cuda_memory.h"

namespace iha::model {
namespace {

class CudaPool final : public CudaMemory {
 public:
  explicit CudaPool(cudaStream_t stream) : stream_(stream) {}
  ~CudaPool() override;
  absl::Status Open(int index);

  absl::StatusOr<void*> Allocate(size_t bytes, const char* name) override;
  void Free(void* memory) override;
  std::optional<int64_t> Kept() override;
  absl::Status BeginRecording() override {
    recording_ = true;
    return absl::OkStatus();
  }
  absl::Status EndRecording() override {
    recording_ = false;
    return absl::OkStatus();
  }

 private:
  cudaError_t Take(size_t bytes, void** memory);

  const cudaStream_t stream_;
  cudaMemPool_t pool_ = nullptr;
  // Of recordings.
  struct Piece {
    size_t bytes = 0;
    bool taken = false;  // by the recording that runs
  };
  bool recording_ = false;
  std::map<void*, Piece> pieces_;
};

CudaPool::~CudaPool() {
  for (const auto& [memory, piece] : pieces_) cudaFree(memory);
  if (pool_ != nullptr) cudaMemPoolDestroy(pool_);
}

absl::Status CudaPool::Open(int index) {
  const std::string what = fmt::format("--device cuda:{}", index);
  cudaMemPoolProps props{};
  props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice;
  props.location.id = index;
  IHA_RETURN_IF_ERROR(CudaStatus(cudaMemPoolCreate(&pool_, &props), what));
  // Scratch of one step serves the next: nothing goes back to the GPU at a synchronization.
  uint64_t keep = UINT64_MAX;
  return CudaStatus(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep), what);
}

absl::StatusOr<void*> CudaPool::Allocate(size_t bytes, const char* name) {
  void* memory = nullptr;
  const cudaError_t error = recording_ ? Take(bytes, &memory) : cudaMallocFromPoolAsync(&memory, bytes, pool_, stream_);
  if (error == cudaSuccess) return memory;
  cudaGetLastError();  // or the next launch would report it
  return CudaStatus(error, name);
}

// The smallest spare piece that is not far too large. What the pool keeps for other allocations is of no use to a
// recording: it goes back to the GPU before there is no memory.
cudaError_t CudaPool::Take(size_t bytes, void** memory) {
  const size_t size = (bytes + 255) / 256 * 256;
  auto best = pieces_.end();
  for (auto at = pieces_.begin(); at != pieces_.end(); ++at) {
    const Piece& piece = at->second;
    if (piece.taken || piece.bytes < size || piece.bytes > 2 * size) continue;
    if (best == pieces_.end() || piece.bytes < best->second.bytes) best = at;
  }
  if (best == pieces_.end()) {
    cudaError_t error = cudaMalloc(memory, size);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      cudaMemPoolTrimTo(pool_, 0);
      error = cudaMalloc(memory, size);
    }
    if (error != cudaSuccess) return error;
    try {
      best = pieces_.try_emplace(*memory, Piece{.bytes = size}).first;
    } catch (const std::bad_alloc&) {
      cudaFree(*memory);
      return cudaErrorMemoryAllocation;
    }
  }
  best->second.taken = true;
  *memory = best->first;
  return cudaSuccess;
}

void CudaPool::Free(void* memory) {
  if (const auto piece = pieces_.find(memory); piece != pieces_.end()) {
    piece->second.taken = false;
    return;
  }
  cudaFreeAsync(memory, stream_);  // fails only after a fault, which the next call reports
}

std::optional<int64_t> CudaPool::Kept() {
  uint64_t reserved = 0, used = 0;
  if (cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved) != cudaSuccess ||
      cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used) != cudaSuccess) {
    cudaGetLastError();
    return std::nullopt;
  }
  return static_cast<int64_t>(reserved - used);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaMemory>> MakeCudaPool(int index, cudaStream_t stream) {
  auto pool = std::make_unique<CudaPool>(stream);
  IHA_RETURN_IF_ERROR(pool->Open(index));
  return pool;
}

}  // namespace iha::model
