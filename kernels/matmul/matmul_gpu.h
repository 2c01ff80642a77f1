// matmul_gpu.h: y = x W^T on the device, bf16 in, fp32 accumulators, bf16 or fp32 out.
//
// y[m][n] = sum over k of x[m][k] w[n][k], by mma in increasing k (16 at a time), one accumulator per element: K is
// never split, so a row's bits depend on its own x only, not on M, the tile or the batch (numerics `cuda-exact`).
// Rounding to bf16 comes once, at the end. Tiles: MatmulGpuTileFor. A tile reads its rows of x and w once, through
// three stages of 64 k that cp.async fills. K and the row strides are multiples of 8, rows begin at multiples of 16
// bytes, N is even; M, N, K need not fill a tile. Returns before it is done (target.h); status 1 for a shape outside of
// these.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/simt/target.h"

namespace iha::kernels {

struct MatmulGpuArgs {
  const uint16_t* x = nullptr;  // [m][ldx]
  const uint16_t* w = nullptr;  // [n][ldw]
  uint16_t* y = nullptr;        // [m][ldy], or null
  float* y_float = nullptr;     // [m][ldy]; one of the two
  uint32_t m = 0;
  uint32_t n = 0;
  uint32_t k = 0;
  uint32_t ldx = 0;
  uint32_t ldw = 0;
  uint32_t ldy = 0;  // even
};

inline constexpr uint32_t kMatmulGpuK = 64;
inline constexpr uint32_t kMatmulGpuStages = 3;
struct MatmulGpuTile {
  uint32_t rows = 0;
  uint32_t columns = 0;
  uint32_t warps = 0;
  [[nodiscard]] constexpr size_t shared_bytes() const {
    return size_t{kMatmulGpuStages} * (rows + columns) * kMatmulGpuK * 2;
  }
  friend constexpr bool operator==(const MatmulGpuTile&, const MatmulGpuTile&) = default;
};
// Few rows (decode): narrow tiles, so that every multiprocessor reads weights. Many: square ones. The launcher looks a
// tile's kernel up in a table: a kernel of other instructions is a line there and its tile a case here.
constexpr MatmulGpuTile MatmulGpuTileFor(uint32_t m) {
  return m <= 16 ? MatmulGpuTile{16, 64, 4} : MatmulGpuTile{128, 128, 8};
}

GpuStatus MatmulGpu(const MatmulGpuArgs& args, GpuStream stream);
// Its kernel: kRowWarps x kColumnWarps warps a block, each 16 kM rows and 16 kN columns.
template <uint32_t kRowWarps, uint32_t kColumnWarps, uint32_t kM, uint32_t kN>
GpuStatus LaunchMatmul(const MatmulGpuArgs& args, GpuStream stream);

}  // namespace iha::kernels
