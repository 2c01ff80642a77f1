// kernel_cases.h: what gpu_bench measures of the kernels: launches of each over device memory, and what they must do.
//
// The same text runs on the emulator with small shapes (tests/bench), which counts that no case claims more than
// its kernel does. Shapes are those of the paper's model (20 heads of 128, hidden 2560, FFN 10240, vocabulary 128256).
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "model/device/device_runtime.h"

namespace iha::model {

struct KernelCase {
  std::string name;
  double bytes = 0;  // each input and output once
  double flops = 0;  // two a multiply-add, without padding; 0: bound by memory
  std::function<kernels::GpuStatus(kernels::GpuStream)> launch;
};
// Called while the memory of the case is there; an error ends all.
using KernelCaseSink = std::function<absl::Status(const KernelCase&)>;

struct KernelSizes {
  uint32_t tokens, heads, d, hidden, inner, vocabulary;
  uint32_t batch, keys;  // of decode
  uint32_t prompt;       // of prefill
  uint32_t square, few;  // of products: square^3, and few rows
  uint32_t peak_rounds;  // of the rate of mma
};
inline constexpr KernelSizes kPaperSizes{8192, 20, 128, 2560, 10240, 128256, 32, 4096, 8192, 8192, 16, 4096};
inline constexpr KernelSizes kTinySizes{5, 2, 64, 72, 136, 300, 3, 100, 70, 72, 3, 2};

// Bound by memory: norms, RoPE, elements, the cache, epilogues, mixes and collapses, tokens.
absl::Status ForEachMemoryCase(DeviceRuntime& runtime, const KernelSizes& sizes, const KernelCaseSink& sink);
// Bound by mma, or decode: products, attention, talking heads. The first case is the rate of mma.sync from registers.
absl::Status ForEachMatrixCase(DeviceRuntime& runtime, const KernelSizes& sizes, const KernelCaseSink& sink);

// n values of bf16 in [-1, 1), the same ones every 4096.
absl::StatusOr<DeviceRows> SomeRows(DeviceRuntime& runtime, size_t n, const char* name);
// Cosines and sines of `rows` positions of d / 2 angles.
struct SomeAngles {
  DeviceArray<float> cos, sin;
};
absl::StatusOr<SomeAngles> AnglesOf(DeviceRuntime& runtime, uint32_t rows, uint32_t d);
// 0, step, 2 step, ..
absl::StatusOr<DeviceArray<uint32_t>> Counting(DeviceRuntime& runtime, uint32_t n, uint32_t step = 1);

}  // namespace iha::model
