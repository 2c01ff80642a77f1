#include "model/device/emulated_runtime.h"

#include <cstring>
#include <new>

#include "common/errors.h"
#include "kernels/simt/device.h"

namespace iha::model {
namespace {

namespace simt = kernels::simt;

constexpr std::align_val_t kAlignment{256};  // as cudaMalloc

class EmulatedRuntime final : public DeviceRuntime {
 public:
  explicit EmulatedRuntime(const EmulatedOptions& options)
      : device_(
            {.seed = options.seed, .copies = options.eager_copies ? simt::CopyMode::kEager : simt::CopyMode::kLazy}) {}

  kernels::GpuStream stream() override { return &device_; }

  absl::StatusOr<void*> Allocate(size_t bytes, DeviceFill fill, const char* name) override {
    try {
      void* const memory = ::operator new(bytes == 0 ? 1 : bytes, kAlignment);
      std::memset(memory, 0xFF, bytes);  // NaN
      device_.Register(memory, bytes, /*writable=*/true, fill == DeviceFill::kReadable, name);
      return memory;
    } catch (const std::bad_alloc&) {
      return ResourceExhausted("{} of {} MiB: out of memory", name, bytes >> 20);
    }
  }

  void Free(void* memory) override {
    device_.Unregister(memory);
    ::operator delete(memory, kAlignment);
  }

  absl::Status Upload(void* to, const void* from, size_t bytes) override {
    if (bytes == 0) return absl::OkStatus();
    std::memcpy(to, from, bytes);
    device_.Find(to)->MarkWritten();
    return absl::OkStatus();
  }

  absl::Status Download(void* to, const void* from, size_t bytes) override {
    if (bytes != 0) std::memcpy(to, from, bytes);
    return absl::OkStatus();
  }

  absl::Status Check(kernels::GpuStatus status, const char* kernel) override {
    if (status == 0) return absl::OkStatus();
    const simt::Report& report = device_.report();
    return report.ok() ? Internal("{}: refuses its shape", kernel) : Internal("{}: {}", kernel, report.message);
  }

 private:
  simt::Device device_;
};

}  // namespace

std::unique_ptr<DeviceRuntime> MakeEmulatedRuntime(const EmulatedOptions& options) {
  return std::make_unique<EmulatedRuntime>(options);
}

}  // namespace iha::model
