// rmsnorm_gpu.h: RMSNorm on the device, bf16 rows: y = (x * r) * g, r = 1 / sqrt(mean(x^2) + eps), in fp32.
//
// The mean is over n values, or over the first mean_of where the rest of a row is zeros that pad it. g_i is the weight,
// 1 + weight (Gemma), or 1. One read of x, one write of y: 4 n bytes a row, and 2 n of weights by
// each block. Order: a thread adds the squares of its values in increasing index, then the threads of a row add
// pairwise at distance 16, 8, 4, 2, 1 of lanes, then warps in order; it depends on n only, so a row's bits do not
// depend on the batch. n is a multiple of 8, at most kMaxRmsNormGpu; rows begin at multiples of 16 bytes. x and y may
// be the same rows. A row with a NaN or an infinity is NaN where 0 * inf or NaN makes it so, as in the reference.
// Returns before it is done (target.h); status: cudaErrorInvalidValue (1) for a shape outside of these.
#pragma once

#include <cstdint>

#include "kernels/simt/target.h"

namespace iha::kernels {

inline constexpr uint32_t kMaxRmsNormGpu = 32768;

struct RmsNormGpuArgs {
  const uint16_t* x = nullptr;       // [rows][ldx]
  const uint16_t* weight = nullptr;  // [n], or null
  uint16_t* y = nullptr;             // [rows][ldy]
  uint32_t rows = 0;
  uint32_t n = 0;
  uint32_t ldx = 0;
  uint32_t ldy = 0;
  float eps = 1e-5f;
  bool weight_plus_one = false;
  uint32_t mean_of = 0;  // 0: n
};

// How a row is spread: threads a row, rows a block, values a thread at most 8 kRmsNormPacks.
inline constexpr uint32_t kRmsNormPacks = 4;
struct RmsNormTile {
  uint32_t threads = 0;  // of a row
  uint32_t rows = 0;     // of a block
};
constexpr RmsNormTile RmsNormTileFor(uint32_t n) {
  const uint32_t packs = (n + 7) / 8, threads = ((packs + kRmsNormPacks - 1) / kRmsNormPacks + 31) / 32 * 32;
  return {threads, threads == 32 ? 4u : 1u};
}

GpuStatus RmsNormGpu(const RmsNormGpuArgs& args, GpuStream stream);

}  // namespace iha::kernels
