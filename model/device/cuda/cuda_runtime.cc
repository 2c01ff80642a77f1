#include "model/device/cuda/cuda_runtime.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>

#include "common/errors.h"
#include "common/status_macros.h"
#include "model/device/cuda/pinned_ring.h"

namespace iha::model {
namespace {

class CudaGraph final : public DeviceGraph {
 public:
  CudaGraph(int index, cudaGraphExec_t graph) : index_(index), graph_(graph) {}
  // One that still runs goes when it is done.
  ~CudaGraph() override {
    cudaSetDevice(index_);
    cudaGraphExecDestroy(graph_);
  }
  cudaGraphExec_t graph() const { return graph_; }

 private:
  const int index_;
  const cudaGraphExec_t graph_;
};

class CudaRuntime final : public DeviceRuntime {
 public:
  explicit CudaRuntime(const CudaDevice& device) : device_(device), index_(device.index) {}
  ~CudaRuntime() override;
  absl::Status Open(const MakeDeviceFast& fast);

  // Asked for at every launch: which device is current belongs to the thread.
  kernels::GpuStream stream() override {
    cudaSetDevice(index_);
    return stream_;
  }
  absl::StatusOr<void*> Allocate(size_t bytes, DeviceFill fill, const char* name) override;
  void Free(void* memory) override;
  absl::Status Upload(void* to, const void* from, size_t bytes) override;
  absl::Status Download(void* to, const void* from, size_t bytes) override;
  absl::Status Check(kernels::GpuStatus status, const char* kernel) override;
  int64_t FreeBytes() override;
  absl::Status BeginRecording() override;
  absl::StatusOr<std::unique_ptr<DeviceGraph>> EndRecording() override;
  absl::Status Replay(DeviceGraph& graph) override;
  DeviceFast* fast() override { return fast_.get(); }

 private:
  cudaError_t Take(size_t bytes, void** memory);

  const CudaDevice device_;
  const int index_;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<DeviceFast> fast_;
  cudaMemPool_t pool_ = nullptr;
  PinnedRing ring_;
  // Of recordings. No graph runs beside another, so one's memory serves all; it stays, as graphs know its addresses.
  bool recording_ = false;
  std::multimap<size_t, void*> spare_;  // by size
  std::map<void*, size_t> taken_;       // by the recording that runs
};

CudaRuntime::~CudaRuntime() {
  cudaSetDevice(index_);
  if (stream_ != nullptr) {
    cudaStreamSynchronize(stream_);
    fast_ = nullptr;  // it works in the stream
    cudaStreamDestroy(stream_);
  }
  for (const auto& [bytes, memory] : spare_) cudaFree(memory);
  if (pool_ != nullptr) cudaMemPoolDestroy(pool_);
}

absl::Status CudaRuntime::Open(const MakeDeviceFast& fast) {
  const std::string what = fmt::format("--device cuda:{}", index_);
  IHA_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(index_), what));
  IHA_RETURN_IF_ERROR(CudaStatus(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), what));
  cudaMemPoolProps props{};
  props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice;
  props.location.id = index_;
  IHA_RETURN_IF_ERROR(CudaStatus(cudaMemPoolCreate(&pool_, &props), what));
  // Scratch of one step serves the next: nothing goes back to the GPU at a synchronization.
  uint64_t keep = UINT64_MAX;
  IHA_RETURN_IF_ERROR(CudaStatus(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep), what));
  if (fast != nullptr) {
    IHA_ASSIGN_OR_RETURN(fast_, fast(device_, stream_));
  }
  return ring_.Open(stream_);
}

// Unwritten memory holds whatever it held: that nothing reads it is what the emulator shows.
absl::StatusOr<void*> CudaRuntime::Allocate(size_t bytes, DeviceFill /*fill*/, const char* name) {
  cudaSetDevice(index_);
  void* memory = nullptr;
  const size_t some = std::max<size_t>(bytes, 1);
  const cudaError_t error = recording_ ? Take(some, &memory) : cudaMallocFromPoolAsync(&memory, some, pool_, stream_);
  if (error == cudaSuccess) return memory;
  cudaGetLastError();  // or the next launch would report it
  if (error != cudaErrorMemoryAllocation) return CudaStatus(error, name);
  size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  return ResourceExhausted("{} of {} MiB: out of memory of the GPU ({} of {} MiB free)", name, bytes >> 20, free >> 20,
                           total >> 20);
}

// The smallest spare piece that is not far too large; allocations in the stream's order would become part of the graph.
// What the pool keeps for them is of no use to a recording: it goes back to the GPU before there is no memory.
cudaError_t CudaRuntime::Take(size_t bytes, void** memory) {
  size_t size = (bytes + 255) / 256 * 256;
  if (const auto spare = spare_.lower_bound(size); spare != spare_.end() && spare->first <= 2 * size) {
    size = spare->first;
    *memory = spare->second;
    spare_.erase(spare);
  } else {
    cudaError_t error = cudaMalloc(memory, size);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      cudaMemPoolTrimTo(pool_, 0);
      error = cudaMalloc(memory, size);
    }
    if (error != cudaSuccess) return error;
  }
  taken_[*memory] = size;
  return cudaSuccess;
}

void CudaRuntime::Free(void* memory) {
  if (const auto taken = taken_.find(memory); taken != taken_.end()) {
    spare_.emplace(taken->second, memory);
    taken_.erase(taken);
    return;
  }
  cudaSetDevice(index_);
  cudaFreeAsync(memory, stream_);  // fails only after a fault, which the next call reports
}

absl::Status CudaRuntime::Upload(void* to, const void* from, size_t bytes) {
  if (recording_) return Internal("upload of {} bytes while launches are recorded", bytes);
  cudaSetDevice(index_);
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  while (bytes > 0) {
    IHA_ASSIGN_OR_RETURN(const std::span<std::byte> part, ring_.Take(bytes));
    std::memcpy(part.data(), source, part.size());
    IHA_RETURN_IF_ERROR(
        CudaStatus(cudaMemcpyAsync(target, part.data(), part.size(), cudaMemcpyHostToDevice, stream_), "upload"));
    target += part.size();
    source += part.size();
    bytes -= part.size();
  }
  return absl::OkStatus();
}

// While one piece is copied out of pinned memory, the next ones are on their way into it.
absl::Status CudaRuntime::Download(void* to, const void* from, size_t bytes) {
  if (recording_) return Internal("download of {} bytes while launches are recorded", bytes);
  cudaSetDevice(index_);
  IHA_RETURN_IF_ERROR(CudaStatus(cudaStreamSynchronize(stream_), "the step"));
  ring_.Reset();
  constexpr size_t kPieces = PinnedRing::kPieces, kBytes = PinnedRing::kPieceBytes;
  const size_t n = (bytes + kBytes - 1) / kBytes;
  const auto size_of = [&](size_t i) { return std::min(kBytes, bytes - i * kBytes); };
  const auto start = [&](size_t i) -> absl::Status {
    IHA_RETURN_IF_ERROR(
        CudaStatus(cudaMemcpyAsync(ring_.Whole(i % kPieces).data(), static_cast<const std::byte*>(from) + i * kBytes,
                                   size_of(i), cudaMemcpyDeviceToHost, stream_),
                   "download"));
    return CudaStatus(cudaEventRecord(ring_.done(i % kPieces), stream_), "download");
  };
  for (size_t i = 0; i < std::min(n, kPieces); i++) IHA_RETURN_IF_ERROR(start(i));
  for (size_t i = 0; i < n; i++) {
    IHA_RETURN_IF_ERROR(CudaStatus(cudaEventSynchronize(ring_.done(i % kPieces)), "download"));
    std::memcpy(static_cast<std::byte*>(to) + i * kBytes, ring_.Whole(i % kPieces).data(), size_of(i));
    if (i + kPieces < n) IHA_RETURN_IF_ERROR(start(i + kPieces));
  }
  return absl::OkStatus();
}

// A launcher that refuses its shape says the same as CUDA of one that it cannot launch.
absl::Status CudaRuntime::Check(kernels::GpuStatus status, const char* kernel) {
  return CudaStatus(static_cast<cudaError_t>(status), kernel);
}

// What the GPU has, and what the pool keeps of it for later allocations.
int64_t CudaRuntime::FreeBytes() {
  cudaSetDevice(index_);
  size_t free = 0, total = 0;
  uint64_t reserved = 0, used = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess ||
      cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved) != cudaSuccess ||
      cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return static_cast<int64_t>(free + reserved - used);
}

// Relaxed: memory may be taken from the GPU meanwhile, by this thread and by others.
absl::Status CudaRuntime::BeginRecording() {
  cudaSetDevice(index_);
  if (fast_ != nullptr) IHA_RETURN_IF_ERROR(fast_->BeginRecording());
  const absl::Status begun = CudaStatus(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), "recording");
  recording_ = begun.ok();
  if (!begun.ok() && fast_ != nullptr) fast_->EndRecording().IgnoreError();
  return begun;
}

absl::StatusOr<std::unique_ptr<DeviceGraph>> CudaRuntime::EndRecording() {
  recording_ = false;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  cudaError_t error = cudaStreamEndCapture(stream_, &graph);
  if (error == cudaSuccess) error = cudaGraphInstantiate(&executable, graph, 0);
  if (graph != nullptr) cudaGraphDestroy(graph);
  std::unique_ptr<DeviceGraph> made;
  if (error == cudaSuccess) made = std::make_unique<CudaGraph>(index_, executable);
  if (fast_ != nullptr) IHA_RETURN_IF_ERROR(fast_->EndRecording());
  if (error == cudaSuccess) return made;
  cudaGetLastError();
  return CudaStatus(error, "recording");
}

absl::Status CudaRuntime::Replay(DeviceGraph& graph) {
  cudaSetDevice(index_);
  return CudaStatus(cudaGraphLaunch(static_cast<CudaGraph&>(graph).graph(), stream_), "replay");
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceRuntime>> MakeCudaRuntime(const CudaDevice& device, const MakeDeviceFast& fast) {
  auto runtime = std::make_unique<CudaRuntime>(device);
  IHA_RETURN_IF_ERROR(runtime->Open(fast));
  return runtime;
}

}  // namespace iha::model
