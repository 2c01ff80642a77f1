#include "model/device/emulated_runtime.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <vector>

#include "common/errors.h"
#include "kernels/simt/device.h"
#include "model/device/device_fast.h"

namespace iha::model {
namespace {

namespace simt = kernels::simt;

constexpr std::align_val_t kAlignment{256};  // as cudaMalloc

struct Delete {
  void operator()(void* memory) const { ::operator delete(memory, kAlignment); }
};

struct Memory {
  void* begin;
  size_t bytes;
  DeviceFill fill;
  const char* name;
};

struct EmulatedMark final : DeviceMark {
  absl::Duration at;
};

class EmulatedGraph final : public DeviceGraph {
 public:
  explicit EmulatedGraph(simt::Device& device) : device_(device) {}
  ~EmulatedGraph() override {
    for (const Memory& m : memory) {
      device_.Unregister(m.begin);
      Delete()(m.begin);
    }
  }

  std::vector<simt::RecordedLaunch> launches;
  std::vector<Memory> memory;  // an allocation each, none is used twice: what each kernel leaves unwritten shows

 private:
  simt::Device& device_;
};

class EmulatedRuntime final : public DeviceRuntime {
 public:
  explicit EmulatedRuntime(const EmulatedOptions& options)
      : device_({.seed = options.seed,
                 .copies = options.eager_copies ? simt::CopyMode::kEager : simt::CopyMode::kLazy,
                 .max_shared_bytes = options.max_shared_bytes}),
        free_bytes_(options.free_bytes),
        clock_(options.clock) {
    if (options.processors > 0) fast_.emplace(options.processors);
  }

  kernels::GpuStream stream() override { return &device_; }
  DeviceFast* fast() override { return fast_.has_value() ? &*fast_ : nullptr; }
  int64_t FreeBytes() override { return free_bytes_; }
  uint32_t MaxSharedBytes() const override { return static_cast<uint32_t>(device_.options().max_shared_bytes); }

  absl::StatusOr<void*> Allocate(size_t bytes, DeviceFill fill, const char* name) override {
    try {
      if (recording_ != nullptr) recording_->memory.reserve(recording_->memory.size() + 1);
      std::unique_ptr<void, Delete> memory(::operator new(bytes == 0 ? 1 : bytes, kAlignment));
      const Memory made{memory.get(), bytes, fill, name};
      Register(made);
      if (recording_ != nullptr) recording_->memory.push_back(made);
      return memory.release();
    } catch (const std::bad_alloc&) {
      return ResourceExhausted("{} of {} MiB: out of memory", name, bytes >> 20);
    }
  }

  void Free(void* memory) override {
    const auto is_it = [&](const Memory& m) { return m.begin == memory; };
    if (recording_ != nullptr) {
      if (std::ranges::any_of(recording_->memory, is_it)) return;  // the graph's
      freed_while_recording_ = true;                               // on a GPU the free would become a part of the graph
    }
    device_.Unregister(memory);
    Delete()(memory);
  }

  absl::Status Upload(void* to, const void* from, size_t bytes) override {
    if (recording_ != nullptr) return Internal("upload of {} bytes while launches are recorded", bytes);
    if (bytes == 0) return absl::OkStatus();
    simt::Allocation* const memory = device_.Find(to);
    if (memory == nullptr || !memory->Holds(reinterpret_cast<uintptr_t>(to), bytes)) {
      return Internal("upload of {} bytes outside of an allocation", bytes);
    }
    std::memcpy(to, from, bytes);
    memory->MarkWritten();
    return absl::OkStatus();
  }

  absl::Status Download(void* to, const void* from, size_t bytes) override {
    if (recording_ != nullptr) return Internal("download of {} bytes while launches are recorded", bytes);
    if (bytes != 0) std::memcpy(to, from, bytes);
    return absl::OkStatus();
  }

  absl::Status Check(kernels::GpuStatus status, const char* kernel) override {
    if (status == 0) return absl::OkStatus();
    const simt::Report& report = device_.report();
    return report.ok() ? Internal("{}: refuses its shape", kernel) : Internal("{}: {}", kernel, report.message);
  }

  // Launches are done when they return.
  absl::StatusOr<std::unique_ptr<DeviceMark>> Mark() override {
    auto mark = std::make_unique<EmulatedMark>();
    if (clock_ != nullptr) mark->at = clock_->Elapsed();
    return mark;
  }
  absl::StatusOr<absl::Duration> Between(const DeviceMark& begin, const DeviceMark& end) override {
    return static_cast<const EmulatedMark&>(end).at - static_cast<const EmulatedMark&>(begin).at;
  }

  absl::Status BeginRecording() override {
    freed_while_recording_ = false;
    recording_ = std::make_unique<EmulatedGraph>(device_);
    device_.Record(&recording_->launches);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<DeviceGraph>> EndRecording() override {
    device_.Record(nullptr);
    if (freed_while_recording_) {
      recording_ = nullptr;
      return Internal("memory of before a recording was freed in it");
    }
    return std::unique_ptr<DeviceGraph>(std::move(recording_));
  }

  absl::Status Replay(DeviceGraph& graph) override {
    const auto& recorded = static_cast<EmulatedGraph&>(graph);
    for (const Memory& memory : recorded.memory) {
      device_.Unregister(memory.begin);
      Register(memory);
    }
    for (const simt::RecordedLaunch& launch : recorded.launches) {
      const simt::Report report = device_.Launch(launch.config, launch.thread);
      if (!report.ok()) return Internal("{}: {}", launch.config.name, report.message);
    }
    return absl::OkStatus();
  }

 private:
  // As nobody has written it: full of NaN.
  void Register(const Memory& memory) {
    std::memset(memory.begin, 0xFF, memory.bytes);
    device_.Register(memory.begin, memory.bytes, /*writable=*/true, memory.fill == DeviceFill::kReadable, memory.name);
  }

  simt::Device device_;
  const int64_t free_bytes_;
  const Clock* const clock_;
  std::optional<SplitKeysOnly> fast_;
  std::unique_ptr<EmulatedGraph> recording_;
  bool freed_while_recording_ = false;
};

}  // namespace

std::unique_ptr<DeviceRuntime> MakeEmulatedRuntime(const EmulatedOptions& options) {
  return std::make_unique<EmulatedRuntime>(options);
}

}  // namespace iha::model
