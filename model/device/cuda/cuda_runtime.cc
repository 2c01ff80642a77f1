#include "model/device/cuda/cuda_runtime.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <new>

#include "common/errors.h"
#include "common/status_macros.h"
#include "model/device/cuda/pinned_ring.h"

namespace iha::model {
namespace {

class CudaGraph final : public DeviceGraph {
 public:
  explicit CudaGraph(int index) : index_(index) {}
  // One that still runs goes when it is done.
  ~CudaGraph() override {
    if (executable_ == nullptr) return;
    cudaSetDevice(index_);
    cudaGraphExecDestroy(executable_);
  }
  cudaError_t Make(cudaGraph_t graph) { return cudaGraphInstantiate(&executable_, graph, 0); }
  cudaGraphExec_t executable() const { return executable_; }

 private:
  const int index_;
  cudaGraphExec_t executable_ = nullptr;
};

struct CudaMark final : DeviceMark {
  explicit CudaMark(int device) : index(device) {}
  ~CudaMark() override {
    if (event == nullptr) return;
    cudaSetDevice(index);
    cudaEventDestroy(event);
  }
  const int index;
  cudaEvent_t event = nullptr;
};

// What a library does, beside a pool that keeps what nobody uses: where the library finds no memory it gets that.
class FastBesidePool final : public DeviceFast {
 public:
  FastBesidePool(std::unique_ptr<DeviceFast> fast, cudaMemPool_t pool, cudaStream_t stream)
      : fast_(std::move(fast)), pool_(pool), stream_(stream) {}
  uint32_t processors() const override { return fast_->processors(); }
  absl::StatusOr<bool> Matmul(const kernels::MatmulGpuArgs& args) override {
    return WithThePools([&] { return fast_->Matmul(args); });
  }
  absl::StatusOr<bool> CausalAttention(const Prompt& prompt) override {
    return WithThePools([&] { return fast_->CausalAttention(prompt); });
  }
  absl::Status BeginRecording() override {
    IHA_RETURN_IF_ERROR(fast_->BeginRecording());
    recording_ = true;
    return absl::OkStatus();
  }
  absl::Status EndRecording() override {
    recording_ = false;
    return fast_->EndRecording();
  }

 private:
  template <class Work>
  absl::StatusOr<bool> WithThePools(const Work& work) {
    absl::StatusOr<bool> done = work();
    if (!absl::IsResourceExhausted(done.status())) return done;
    // What launches still use goes back when they are done; a stream that is recorded cannot be waited for.
    if (!recording_) IHA_RETURN_IF_ERROR(CudaStatus(cudaStreamSynchronize(stream_), "the step"));
    IHA_RETURN_IF_ERROR(CudaStatus(cudaMemPoolTrimTo(pool_, 0), "memory of the pool"));
    return work();
  }

  const std::unique_ptr<DeviceFast> fast_;
  const cudaMemPool_t pool_;
  const cudaStream_t stream_;
  bool recording_ = false;
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
  uint32_t MaxSharedBytes() const override { return device_.max_shared_bytes; }
  absl::StatusOr<std::unique_ptr<DeviceMark>> Mark() override;
  absl::StatusOr<absl::Duration> Between(const DeviceMark& begin, const DeviceMark& end) override;
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
  struct Piece {
    size_t bytes = 0;
    bool taken = false;  // by the recording that runs
  };
  bool recording_ = false;
  std::map<void*, Piece> pieces_;
};

CudaRuntime::~CudaRuntime() {
  cudaSetDevice(index_);
  if (stream_ != nullptr) {
    cudaStreamSynchronize(stream_);
    fast_ = nullptr;  // it works in the stream
    cudaStreamDestroy(stream_);
  }
  for (const auto& [memory, piece] : pieces_) cudaFree(memory);
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
    IHA_ASSIGN_OR_RETURN(std::unique_ptr<DeviceFast> made, fast(device_, stream_));
    fast_ = std::make_unique<FastBesidePool>(std::move(made), pool_, stream_);
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

void CudaRuntime::Free(void* memory) {
  if (const auto piece = pieces_.find(memory); piece != pieces_.end()) {
    piece->second.taken = false;
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

absl::StatusOr<std::unique_ptr<DeviceMark>> CudaRuntime::Mark() {
  cudaSetDevice(index_);
  auto mark = std::make_unique<CudaMark>(index_);
  IHA_RETURN_IF_ERROR(CudaStatus(cudaEventCreateWithFlags(&mark->event, cudaEventDefault), "mark"));
  IHA_RETURN_IF_ERROR(CudaStatus(cudaEventRecord(mark->event, stream_), "mark"));
  return mark;
}

absl::StatusOr<absl::Duration> CudaRuntime::Between(const DeviceMark& begin, const DeviceMark& end) {
  const cudaEvent_t from = static_cast<const CudaMark&>(begin).event, to = static_cast<const CudaMark&>(end).event;
  float milliseconds = 0;
  IHA_RETURN_IF_ERROR(CudaStatus(cudaEventSynchronize(to), "mark"));
  IHA_RETURN_IF_ERROR(CudaStatus(cudaEventElapsedTime(&milliseconds, from, to), "mark"));
  return absl::Milliseconds(milliseconds);
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
  cudaError_t error = cudaStreamEndCapture(stream_, &graph);
  const absl::Status ended = fast_ == nullptr ? absl::OkStatus() : fast_->EndRecording();
  // Of the host's memory: null where there is none, as the stream must be out of its recording in any case.
  std::unique_ptr<CudaGraph> made(new (std::nothrow) CudaGraph(index_));
  if (error == cudaSuccess) error = made == nullptr ? cudaErrorMemoryAllocation : made->Make(graph);
  if (graph != nullptr) cudaGraphDestroy(graph);
  IHA_RETURN_IF_ERROR(ended);
  if (error == cudaSuccess) return made;
  cudaGetLastError();
  return CudaStatus(error, "recording");
}

absl::Status CudaRuntime::Replay(DeviceGraph& graph) {
  cudaSetDevice(index_);
  return CudaStatus(cudaGraphLaunch(static_cast<CudaGraph&>(graph).executable(), stream_), "replay");
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceRuntime>> MakeCudaRuntime(const CudaDevice& device, const MakeDeviceFast& fast) {
  auto runtime = std::make_unique<CudaRuntime>(device);
  IHA_RETURN_IF_ERROR(runtime->Open(fast));
  return runtime;
}

}  // namespace iha::model
