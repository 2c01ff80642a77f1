// device.h: the emulated device: its global memory and its kernel launches.
//
// Memory is what a caller allocated (Buffer) or registered: a kernel's pointers are looked up when the kernel makes
// Globals of them, and an access outside of that allocation, or a write to read-only memory, is an error, also where it
// would hit another allocation. Buffers are heap blocks of the exact size, filled with NaN: AddressSanitizer and NaN
// catch what bypasses Globals. Blocks of a launch run one after another in increasing order on the calling thread; one
// thread uses a device at a time. A launch returns when it is done or has found an error.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/simt/fiber.h"
#include "kernels/simt/report.h"
#include "kernels/simt/target.h"

namespace iha::kernels::simt {

// One allocation and who touched it. Serial numbers count the blocks that ran on the device; below the first of a
// launch is the past.
class Allocation {
 public:
  Allocation(const void* begin, size_t bytes, bool writable, bool written, std::string name);

  [[nodiscard]] uintptr_t begin() const { return begin_; }
  [[nodiscard]] size_t bytes() const { return bytes_; }
  [[nodiscard]] bool writable() const { return writable_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool Holds(uintptr_t address, size_t bytes) const {
    return address >= begin_ && bytes <= bytes_ && address - begin_ <= bytes_ - bytes;
  }

  enum class Access { kRead, kWrite, kAtomic };
  struct Conflict {
    ErrorKind kind;
    size_t offset;
    uint32_t other = 0;  // serial of the other block
    bool other_writes = false;
  };
  // Notes an access by block `serial` of the launch that began with serial `first`; false and `conflict` if it meets
  // another block's, or reads bytes that nobody wrote.
  [[nodiscard]] bool Touch(size_t offset, size_t bytes, Access access, uint32_t serial, uint32_t first,
                           Conflict* conflict);
  void MarkWritten();

 private:
  struct Granule {
    uint32_t writer;  // serial; kAtomicBit: by an atomic; 0: unwritten; 1: the host
    uint32_t reader;  // serial of the newest; kManyBit: others of that launch too
  };
  const uintptr_t begin_;
  const size_t bytes_;
  const bool writable_;
  const std::string name_;
  std::vector<Granule> granules_;
};

struct LaunchConfig {
  const char* name = "kernel";
  Dim3 grid = {};
  Dim3 block = {};
  size_t shared_bytes = 0;  // dynamic; exact
};

// A launch that was written down: its kernel's arguments are copies.
struct RecordedLaunch {
  LaunchConfig config;
  std::function<void()> thread;
};

inline constexpr size_t kFiberStackBytes = size_t{128} << 10;
inline constexpr size_t kMaxBlockThreads = 1024;

class Device {
 public:
  explicit Device(const Options& options = {}) : options_(options), fibers_(kFiberStackBytes) {}

  [[nodiscard]] const Options& options() const { return options_; }
  void set_options(const Options& options) { options_ = options; }

  // Memory of the caller's, until Unregister. `name` is for messages. Overlapping another allocation is a bug.
  void Register(const void* begin, size_t bytes, bool writable, bool written, std::string name);
  void Unregister(const void* begin);
  // The allocation that holds the address (its end included, if no other one begins there); null if none does.
  [[nodiscard]] Allocation* Find(const void* address);

  // Runs `thread` once per thread of the grid.
  Report Launch(const LaunchConfig& config, const std::function<void()>& thread);
  // While `to` is not null, launches that are not refused go there and are not done.
  void Record(std::vector<RecordedLaunch>* to) { record_ = to; }
  // Of the newest launch, and the sum of all.
  [[nodiscard]] const Report& report() const { return report_; }
  [[nodiscard]] const Counters& total() const { return total_; }

 private:
  Options options_;
  FiberPool fibers_;
  std::vector<std::unique_ptr<Allocation>> allocations_;  // by address
  Allocation* last_ = nullptr;
  uint32_t next_serial_ = 2;
  std::vector<RecordedLaunch>* record_ = nullptr;
  Report report_;
  Counters total_;
};

// n values in global memory, dropped with the object. Unwritten, or a copy of the given values.
template <class T>
class Buffer {
 public:
  Buffer(Device& device, size_t n, std::string name = "buffer") : Buffer(device, n, false, true, std::move(name)) {
    std::memset(static_cast<void*>(data_), 0xFF, n_ * sizeof(T));
  }
  // Kernels may not write it.
  Buffer(Device& device, std::span<const T> values, std::string name = "input")
      : Buffer(device, values.size(), true, false, std::move(name)) {
    if (n_ != 0) std::memcpy(static_cast<void*>(data_), values.data(), n_ * sizeof(T));
  }
  Buffer(Device& device, const std::vector<T>& values, std::string name = "input")
      : Buffer(device, std::span<const T>(values), std::move(name)) {}
  ~Buffer() {
    device_.Unregister(data_);
    ::operator delete (data_, std::align_val_t{kAlignment});
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] T* data() { return data_; }
  [[nodiscard]] size_t size() const { return n_; }
  [[nodiscard]] std::vector<T> ToHost() const { return std::vector<T>(data_, data_ + n_); }

 private:
  static constexpr size_t kAlignment = 256;  // as cudaMalloc

  Buffer(Device& device, size_t n, bool written, bool writable, std::string name)
      : device_(device),
        n_(n),
        data_(static_cast<T*>(::operator new (n * sizeof(T) + (n == 0 ? 1 : 0), std::align_val_t{kAlignment}))) {
    device_.Register(data_, n * sizeof(T), writable, written, std::move(name));
  }

  Device& device_;
  size_t n_;
  T* data_;
};

}  // namespace iha::kernels::simt
