// device_runtime.h: all that the forward pass on a device needs of it: memory, copies, the stream of its launches.
//
// Implementations: the emulator (emulated_runtime.h); on a GPU, CUDA's runtime. Everything happens in the order of one
// stream: memory that is freed while launches before that still use it stays until they are done, a source of Upload
// may be reused when it returns, Download waits for all before it. Thread: the backend's. Errors: ResourceExhausted
// (memory), Internal (a launch failed: the message is the device's).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/status_macros.h"
#include "kernels/simt/target.h"

namespace iha::model {

enum class DeviceFill {
  kUnwritten,  // to be written before it is read
  kReadable,   // may be copied before all of it is written: pages of a cache
};

// Launches that were recorded. Destroyed before its runtime.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
};

// A point in the order of the stream. Destroyed before its runtime.
class DeviceMark {
 public:
  virtual ~DeviceMark() = default;
};

class DeviceFast;

class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;
  virtual kernels::GpuStream stream() = 0;
  // Aligned to 256 bytes; not null, also for 0 bytes. `name` is a literal, for messages.
  [[nodiscard]] virtual absl::StatusOr<void*> Allocate(size_t bytes, DeviceFill fill, const char* name) = 0;
  virtual void Free(void* memory) = 0;
  // `to` is the beginning of an allocation.
  [[nodiscard]] virtual absl::Status Upload(void* to, const void* from, size_t bytes) = 0;
  [[nodiscard]] virtual absl::Status Download(void* to, const void* from, size_t bytes) = 0;
  // What a launcher returned.
  [[nodiscard]] virtual absl::Status Check(kernels::GpuStatus status, const char* kernel) = 0;
  // What could still be allocated, or was freed; 0: nobody knows.
  virtual int64_t FreeBytes() = 0;
  // Of a block's shared memory: what a launch may ask for.
  virtual uint32_t MaxSharedBytes() const = 0;

  // A mark behind all that was enqueued, outside of recordings; from one to a later one, once both are passed: waits.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<DeviceMark>> Mark() = 0;
  [[nodiscard]] virtual absl::StatusOr<absl::Duration> Between(const DeviceMark& begin, const DeviceMark& end) = 0;

  // From BeginRecording to EndRecording, which comes whatever happens between, launches are recorded and not done;
  // nothing is uploaded or downloaded. Memory that is allocated meanwhile is freed meanwhile, and is the graph's own
  // each time it runs: every address that a launch takes stays. Replay enqueues all of them in their order.
  [[nodiscard]] virtual absl::Status BeginRecording() = 0;
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<DeviceGraph>> EndRecording() = 0;
  [[nodiscard]] virtual absl::Status Replay(DeviceGraph& graph) = 0;
  // What numerics `fast` have beside the kernels (device_fast.h); null: exact ones.
  virtual DeviceFast* fast() { return nullptr; }
};

// n values of device memory, freed with the object. The runtime must outlive it.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  DeviceArray(DeviceArray&& other) noexcept { Swap(other); }
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    Swap(other);
    return *this;
  }
  ~DeviceArray() {
    if (runtime_ != nullptr) runtime_->Free(data_);
  }

  static absl::StatusOr<DeviceArray> Make(DeviceRuntime& runtime, size_t n, const char* name,
                                          DeviceFill fill = DeviceFill::kUnwritten) {
    DeviceArray array;
    IHA_ASSIGN_OR_RETURN(void* const memory, runtime.Allocate(n * sizeof(T), fill, name));
    array.runtime_ = &runtime;
    array.data_ = static_cast<T*>(memory);
    array.size_ = n;
    return array;
  }
  static absl::StatusOr<DeviceArray> Copy(DeviceRuntime& runtime, std::span<const T> values, const char* name) {
    IHA_ASSIGN_OR_RETURN(DeviceArray array, Make(runtime, values.size(), name));
    IHA_RETURN_IF_ERROR(runtime.Upload(array.data_, values.data(), values.size_bytes()));
    return array;
  }

  // As many values, over those that were there.
  [[nodiscard]] absl::Status Set(std::span<const T> values) const {
    return runtime_->Upload(data_, values.data(), values.size_bytes());
  }

  [[nodiscard]] T* data() const { return data_; }  // null: nothing here
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return data_ == nullptr; }
  [[nodiscard]] absl::StatusOr<std::vector<T>> ToHost() const {
    std::vector<T> values(size_);
    IHA_RETURN_IF_ERROR(runtime_->Download(values.data(), data_, size_ * sizeof(T)));
    return values;
  }

 private:
  void Swap(DeviceArray& other) {
    std::swap(runtime_, other.runtime_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  DeviceRuntime* runtime_ = nullptr;
  T* data_ = nullptr;
  size_t size_ = 0;
};

// Values as the device keeps activations, weights and caches.
using DeviceRows = DeviceArray<uint16_t>;  // bf16

}  // namespace iha::model
