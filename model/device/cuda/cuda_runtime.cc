#include "model/device/cuda/cuda_runtime.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>

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

class CudaRuntime final : public DeviceRuntime {
 public:
  explicit CudaRuntime(const CudaDevice& device) : device_(device), index_(device.index) {}
  ~CudaRuntime() override;
  absl::Status Open(const MakeCudaFast& fast);

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
  const CudaDevice device_;
  const int index_;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<CudaMemory> memory_;
  std::unique_ptr<DeviceFast> fast_;
  PinnedRing ring_;
  bool recording_ = false;
};

CudaRuntime::~CudaRuntime() {
  cudaSetDevice(index_);
  if (stream_ == nullptr) return;
  cudaStreamSynchronize(stream_);
  fast_ = nullptr;  // both work in the stream
  memory_ = nullptr;
  cudaStreamDestroy(stream_);
}

absl::Status CudaRuntime::Open(const MakeCudaFast& fast) {
  const std::string what = fmt::format("--device cuda:{}", index_);
  IHA_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(index_), what));
  IHA_RETURN_IF_ERROR(CudaStatus(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), what));
  if (fast != nullptr) {
    IHA_ASSIGN_OR_RETURN(CudaFast made, fast(device_, stream_));
    memory_ = std::move(made.memory);
    fast_ = std::move(made.fast);
  } else {
    IHA_ASSIGN_OR_RETURN(memory_, MakeCudaPool(index_, stream_));
  }
  return ring_.Open(stream_);
}

// Unwritten memory holds whatever it held: that nothing reads it is what the emulator shows.
absl::StatusOr<void*> CudaRuntime::Allocate(size_t bytes, DeviceFill /*fill*/, const char* name) {
  cudaSetDevice(index_);
  absl::StatusOr<void*> memory = memory_->Allocate(std::max<size_t>(bytes, 1), name);
  if (!absl::IsResourceExhausted(memory.status())) return memory;
  size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  return ResourceExhausted("{} of {} MiB: out of memory of the GPU ({} of {} MiB free)", name, bytes >> 20, free >> 20,
                           total >> 20);
}

void CudaRuntime::Free(void* memory) {
  cudaSetDevice(index_);
  memory_->Free(memory);
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

// What the GPU has, and what is kept of it for later allocations.
int64_t CudaRuntime::FreeBytes() {
  cudaSetDevice(index_);
  size_t free = 0, total = 0;
  const std::optional<int64_t> kept = memory_->Kept();
  if (kept.has_value() && cudaMemGetInfo(&free, &total) == cudaSuccess) return static_cast<int64_t>(free) + *kept;
  cudaGetLastError();
  return 0;
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
  IHA_RETURN_IF_ERROR(memory_->BeginRecording());
  const absl::Status begun = CudaStatus(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), "recording");
  recording_ = begun.ok();
  if (!begun.ok()) memory_->EndRecording().IgnoreError();
  return begun;
}

absl::StatusOr<std::unique_ptr<DeviceGraph>> CudaRuntime::EndRecording() {
  recording_ = false;
  cudaGraph_t graph = nullptr;
  cudaError_t error = cudaStreamEndCapture(stream_, &graph);
  const absl::Status ended = memory_->EndRecording();
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

absl::StatusOr<std::unique_ptr<DeviceRuntime>> MakeCudaRuntime(const CudaDevice& device, const MakeCudaFast& fast) {
  auto runtime = std::make_unique<CudaRuntime>(device);
  IHA_RETURN_IF_ERROR(runtime->Open(fast));
  return runtime;
}

}  // namespace iha::model
