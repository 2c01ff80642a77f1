#include "model/device/cuda/torch_memory.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>

namespace iha::model {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

constexpr size_t kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);

}  // namespace

TorchMemory::TorchMemory(int index, cudaStream_t stream, c10::MempoolId_t recordings)
    : stream_(c10::cuda::getStreamFromExternal(stream, static_cast<c10::DeviceIndex>(index))),
      recordings_(std::move(recordings)) {}

TorchMemory::~TorchMemory() {
  GuardedTorch("memory", [&] {
    for (; begun_ > 0; begun_--) allocator::releasePool(stream_.device_index(), recordings_);
    allocator::emptyCache();
    return true;
  }).IgnoreError();
}

absl::StatusOr<void*> TorchMemory::Allocate(size_t bytes, const char* name) {
  void* memory = nullptr;
  const absl::StatusOr<bool> done = Run(name, [&] {
    const c10::cuda::CUDAStreamGuard stream(stream_);
    memory = allocator::raw_alloc_with_stream(bytes, stream_.stream());
    return true;
  });
  if (!done.ok()) return done.status();
  return memory;
}

void TorchMemory::Free(void* memory) {
  // Throws only after a fault, which the next call reports.
  GuardedTorch("memory", [&] {
    const c10::cuda::CUDAStreamGuard stream(stream_);
    allocator::raw_delete(memory);
    return true;
  }).IgnoreError();
}

std::optional<int64_t> TorchMemory::Kept() {
  int64_t kept = 0;
  const absl::StatusOr<bool> known = GuardedTorch("memory", [&] {
    const auto stats = allocator::getDeviceStats(stream_.device_index());
    kept = stats.reserved_bytes[kAll].current - stats.allocated_bytes[kAll].current;
    if (begun_ == 0) return true;
    for (const auto& segment : allocator::snapshot(recordings_, /*include_traces=*/false).segments) {
      kept -= static_cast<int64_t>(segment.total_size - segment.allocated_size);
    }
    return true;
  });
  if (!known.ok()) return std::nullopt;
  return kept;
}

absl::Status TorchMemory::BeginRecording() {
  const absl::StatusOr<bool> begun = GuardedTorch("recording", [&] {
    const cudaStream_t mine = stream_.stream();
    allocator::beginAllocateToPool(stream_.device_index(), recordings_,
                                   [mine](cudaStream_t stream) { return stream == mine; });
    begun_++;
    return true;
  });
  recording_ = begun.ok();
  return begun.status();
}

absl::Status TorchMemory::EndRecording() {
  recording_ = false;
  return GuardedTorch("recording",
                      [&] {
                        allocator::endAllocateToPool(stream_.device_index(), recordings_);
                        return true;
                      })
      .status();
}

// LibTorch empties no cache while anything allocates to a pool: for that moment nothing does.
absl::Status TorchMemory::GiveBack() {
  absl::Status status = EndRecording();
  status.Update(GuardedTorch("memory", [] {
                  allocator::emptyCache();
                  return true;
                }).status());
  status.Update(BeginRecording());
  return status;
}

}  // namespace iha::model
