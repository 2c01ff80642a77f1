// iha_mix_rope_gpu.h: heads mixed into pseudo heads, rotated, and written interleaved, on the device (numerics.md,
// NUM-9).
//
// Of token t, from rows x_m of its H heads, for target h and pseudo j, r = rounding to bf16:
//   keys and queries: y[h,j] = r(Rot_j(r(sum over m of alpha(m,h,j) k_m))), k_m = r(RoPE(x_m, row[t]))
//   values: y[h,j] = r(sum over m of alpha(m,h,j) x_m)
//   keys and queries with a norm (post_mix): y[h,j] = r(Rot_j(RoPE(RMSNorm(sum over m of alpha(m,h,j) x_m), row[t])))
// The sum is by mma with fp32 accumulators, in increasing m; alpha in bf16, or where that is not exact as the sum of
// two bf16 (error below 2^-17 of it), high parts first; low parts meet infinities of k_m and x_m as zeros, so that what
// an infinity comes to is alpha's own doing in either form. RoPE pairs element i with i + d / 2, or with interleaved
// pairing 2 i with 2 i + 1. A row of y is written at virtual token t P + j: y[((t P + j) H + h) d + i], the layout that
// attention over P T tokens reads.
//
// Design (kernels.md, 2a): bound by memory. A warp takes a token and 64 of its columns (32 and their partners, or 32
// pairs): reads each element of x once, keeps the fragments of all heads in registers, passes over the rows (h, j) of
// alpha 16 at a time and stages each 16 rows in shared memory, so that it writes 64 contiguous bytes a row. A block
// holds all rows of alpha where its shared memory does (MixGpuRowsFor); else blocks take equal parts of them and each
// reads x. With a norm a warp still holds 64 columns, and the d / 64 warps of a token exchange their sums of squares,
// 16 rows at a time: fp32 until the one rounding; a lane adds its 16 squares in increasing column, then the four lanes
// of a row (distance 2, 1), then slices of columns in order. The bits of a token's rows depend on its own x only.
//
// heads at most 64, d a multiple of 64 (with a norm 64, 128 or 256), token strides multiples of 8, rows at multiples of
// 16 bytes. Parts that rotate have a norm all or none. Returns before it is done (target.h); status 1 for a shape
// outside of these, or with so many pseudo heads that shared memory does not hold their rotations.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/rope/rope.h"
#include "kernels/simt/target.h"

namespace iha::kernels {

struct IhaMixGpuShape {
  uint32_t tokens = 0;
  uint32_t heads = 0;
  uint32_t pseudo = 0;  // P
  uint32_t d = 0;
};

// alpha for the device: rows (h, j) padded to 16 with zeros, of `terms` times `columns` bf16.
struct MixGpuAlphaLayout {
  uint32_t rows = 0;     // padded
  uint32_t columns = 0;  // heads padded to 16, 32 or 64
  uint32_t terms = 0;    // 1 or 2
  [[nodiscard]] constexpr size_t elements() const { return size_t{rows} * columns * terms; }
};
inline constexpr uint32_t kMixGpuMaxHeads = 64;
constexpr MixGpuAlphaLayout MixGpuAlphaLayoutFor(const IhaMixGpuShape& s, uint32_t terms) {
  return {(s.heads * s.pseudo + 15) / 16 * 16, s.heads <= 16 ? 16u : s.heads <= 32 ? 32u : 64u, terms};
}
// 1 if bf16 holds every alpha, else 2.
uint32_t MixGpuTerms(const float* alpha, size_t n);
// alpha: [h][j][m] (IhaPackAlpha); packed: layout.elements().
void MixGpuPackAlpha(const IhaMixGpuShape& shape, uint32_t terms, const float* alpha, uint16_t* packed);

// One of q, k, v.
struct IhaMixGpuPart {
  const uint16_t* x = nullptr;  // token t at t * token_stride, its heads [H][d] dense
  uint32_t token_stride = 0;
  uint32_t rotate = 0;              // 1: keys and queries
  const uint16_t* alpha = nullptr;  // packed, of args.terms
  uint16_t* y = nullptr;
  const uint16_t* norm = nullptr;  // [d]: post_mix, only where it rotates; null: none
};
struct IhaMixGpuArgs {
  IhaMixGpuShape shape;
  uint32_t terms = 1;
  uint32_t count = 0;  // of parts
  IhaMixGpuPart parts[3];
  // Tables [row][d / 2]: position t P is row first_row[t] of cos, sin; shift_cos, shift_sin hold rows 0 .. P - 1.
  const uint32_t* first_row = nullptr;
  const float* cos = nullptr;
  const float* sin = nullptr;
  const float* shift_cos = nullptr;
  const float* shift_sin = nullptr;
  float norm_eps = 0.0f;
  uint32_t norm_mean_of = 0;  // values of the mean where zeros pad a row, 0: d
  RopePairing pairing = RopePairing::kHalf;
  uint32_t max_shared_bytes = kGpuMaxSharedBytes;  // of a block on this device
  uint32_t block_rows = 0;                         // set by the launcher: MixGpuRowsFor
};

inline constexpr uint32_t kMixGpuWarps = 4;
inline constexpr uint32_t kMixGpuTokens = 32;   // of a block
inline constexpr uint32_t kMixGpuColumns = 64;  // of a block
// Shared memory of a block: `rows` rows of alpha with 16 bytes between them (no bank conflicts), the shift tables, and
// per warp its token and 16 rows of output. With a norm: shift tables of all columns, and sums of squares of 16 rows by
// each warp, twice.
constexpr size_t MixGpuAlphaStride(const MixGpuAlphaLayout& a) { return size_t{a.columns} * a.terms * 2 + 16; }
constexpr size_t MixGpuSharedBytes(const IhaMixGpuShape& s, uint32_t terms, bool norm, uint32_t rows) {
  const MixGpuAlphaLayout a = MixGpuAlphaLayoutFor(s, terms);
  const size_t slices = norm ? s.d / kMixGpuColumns : 1;
  return rows * MixGpuAlphaStride(a) + slices * s.pseudo * 256 + kMixGpuWarps * (size_t{a.columns} + 16) * 128 +
         (norm ? 2 * kMixGpuWarps * 16 * 4 : 0);
}
// Rows of alpha that a block holds: all of them, or of the fewest equal parts that fit; 0: not even 16 do.
constexpr uint32_t MixGpuRowsFor(const IhaMixGpuShape& s, uint32_t terms, bool norm,
                                 uint32_t max_shared_bytes = kGpuMaxSharedBytes) {
  const uint32_t all = MixGpuAlphaLayoutFor(s, terms).rows;
  for (uint32_t parts = 1;; ++parts) {
    const uint32_t rows = ((all + parts - 1) / parts + 15) / 16 * 16;
    if (MixGpuSharedBytes(s, terms, norm, rows) <= max_shared_bytes) return rows;
    if (rows == 16) return 0;
  }
}

GpuStatus IhaMixRopeGpu(const IhaMixGpuArgs& args, GpuStream stream);

// Its kernels, for heads padded to 16 kSteps: 1, 2 or 4 (iha_mix_rope.cuh).
template <uint32_t kSteps, uint32_t kTerms, bool kNorm>
GpuStatus LaunchMixRope(const IhaMixGpuArgs& args, GpuStream stream);

}  // namespace iha::kernels
