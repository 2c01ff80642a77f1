// cuda_test_device.h: a GPU with the face of the emulator (kernels/simt/device.h), as far as the kernels' tests use it,
// so that their text runs on both. Memory is CUDA's managed memory, which host and GPU reach by the same pointer;
// schedules mean nothing and nothing is counted: a count equals whatever a test expects of it.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "kernels/simt/target.h"

namespace iha::kernels {
namespace simt {

struct Count {
  friend Count operator-(Count, Count) { return {}; }
  template <class T>
  friend bool operator==(Count, const T&) {
    return true;
  }
};

struct Counters {
  Count global_read_bytes, global_written_bytes, mma, mma_multiply_adds, matrix_bank_conflicts;
};

struct Report {
  std::string message;
  Counters counters;
  [[nodiscard]] bool ok() const { return message.empty(); }
};

enum class CopyMode { kEager, kLazy };
struct Options {
  uint64_t seed = 1;
  CopyMode copies = CopyMode::kLazy;
};
struct LaunchConfig {
  const char* name = "kernel";
};

// On CUDA's default stream.
class Device {
 public:
  explicit Device(const Options& /*options*/ = {}) {}
  // What launchers of either build take.
  GpuStream operator&() const { return nullptr; }

  // Waits for what was launched.
  const Report& report() {
    const cudaError_t error = cudaDeviceSynchronize();
    report_.message = error == cudaSuccess ? "" : cudaGetErrorString(error);
    return report_;
  }
  [[nodiscard]] const Counters& total() const { return report_.counters; }
  // A thread by itself is host code.
  template <class Thread>
  const Report& Launch(const LaunchConfig& /*config*/, const Thread& thread) {
    if (report().ok()) thread();
    return report_;
  }
  struct Memory {
    void MarkWritten() const {}
  };
  [[nodiscard]] const Memory* Find(const void* /*address*/) const { return &memory_; }

 private:
  Report report_;
  Memory memory_;
};

template <class T>
class Buffer {
 public:
  Buffer(Device& device, size_t n, const char* /*name*/ = "") : device_(device), n_(n) {
    void* memory = nullptr;
    const cudaError_t error = cudaMallocManaged(&memory, n * sizeof(T) + 1, cudaMemAttachGlobal);
    EXPECT_EQ(error, cudaSuccess) << cudaGetErrorString(error);
    data_ = static_cast<T*>(memory);
    if (error == cudaSuccess) std::memset(memory, 0xFF, n * sizeof(T));
  }
  Buffer(Device& device, std::span<const T> values, const char* name = "") : Buffer(device, values.size(), name) {
    if (data_ != nullptr && n_ != 0) std::memcpy(static_cast<void*>(data_), values.data(), n_ * sizeof(T));
  }
  Buffer(Device& device, const std::vector<T>& values, const char* name = "")
      : Buffer(device, std::span<const T>(values), name) {}
  ~Buffer() {
    cudaDeviceSynchronize();
    cudaFree(data_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] T* data() { return data_; }
  [[nodiscard]] size_t size() const { return n_; }
  [[nodiscard]] std::vector<T> ToHost() const {
    const Report& report = device_.report();
    EXPECT_TRUE(report.ok()) << report.message;
    if (!report.ok() || data_ == nullptr) return std::vector<T>(n_);
    return std::vector<T>(data_, data_ + n_);
  }

 private:
  Device& device_;
  size_t n_;
  T* data_ = nullptr;
};

}  // namespace simt

// What a thread on the host writes with.
namespace ptx {
template <class T>
using Global = T*;
template <class T>
void Store(T* to, T value) {
  *to = value;
}
}  // namespace ptx

}  // namespace iha::kernels
