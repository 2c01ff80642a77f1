// argmax_gpu.h: the token of a row of fp32 logits by the rule of Argmax (logits.h), on the device.
//
// token[r] = lowest index among the largest of logits[r][0 .. n - 1], -1 if one of them is NaN; +0 and -0 are equal.
// The same token as the CPU's from equal logits: comparisons only, in any order. One pass over the logits. n > 0.
// Returns before it is done (target.h); status 1 for a shape outside of these.
#pragma once

#include <cstdint>

#include "kernels/simt/target.h"

namespace iha::kernels {

struct ArgmaxGpuArgs {
  const float* logits = nullptr;  // [rows][ld]
  int32_t* tokens = nullptr;      // [rows]
  uint32_t rows = 0;
  uint32_t n = 0;
  uint32_t ld = 0;
};

inline constexpr uint32_t kArgmaxGpuThreads = 256;

GpuStatus ArgmaxGpu(const ArgmaxGpuArgs& args, GpuStream stream);

}  // namespace iha::kernels
