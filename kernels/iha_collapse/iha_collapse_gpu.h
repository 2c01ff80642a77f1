// iha_collapse_gpu.h: the outputs of P pseudo heads back to one row a head, on the device, with XSA before it.
//
// a: outputs of attention over virtual tokens, a[((t P + j) H + h) d + i], bf16. Per head (paper Algorithm 1):
// O[h] = sum over j of R[h][j] z[h][j], one fma chain in increasing j from 0 in fp32, rounded to bf16 once; R fp32
// [H][P]. z = a, or with v (values of the same layout) z = a - (a . u) u, u = v / max(||v||, 1e-12): squares and
// products of 8 columns in a chain per lane, then pairs of lanes; z is not rounded. out: [t][H][d]. One pass: reads a
// (and v) once, writes out once. A token's bits depend on its own rows only. d is 64, 128 or 256.
//
// Global (paper Definition 3): O[h] = sum over r = (i, j) of R[h][i P + j] a[i][j], by mma with fp32 accumulators in
// increasing r, 16 rows at a time; R in bf16, or as the sum of two bf16 (error below 2^-17 of it), high parts of 16
// rows before their low parts, which meet infinities of a as zeros. A warp takes a token and 64 columns, streams the H
// P rows of a once through two stages of 32 rows and keeps all heads in registers. heads at most 64, d a multiple
// of 64. With v, rows are z as above, rounded to bf16 for the mma; a block takes a token and all of its columns, reads
// a and v once (d 64, 128 or 256). A block holds R of all heads where its shared memory does (CollapseGpuTilesFor);
// else blocks take equal parts of the heads and each reads a (and v).
//
// Both return before they are done (target.h); status 1 for a shape outside of these, or with so many pseudo heads that
// shared memory does not hold R of 16 heads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/simt/target.h"

namespace iha::kernels {

struct IhaCollapseGpuArgs {
  const uint16_t* a = nullptr;
  const uint16_t* v = nullptr;  // null: no XSA
  const float* collapse = nullptr;
  uint16_t* out = nullptr;
  uint32_t tokens = 0;
  uint32_t heads = 0;
  uint32_t pseudo = 0;
  uint32_t d = 0;
};

inline constexpr uint32_t kCollapseGpuThreads = 128;

GpuStatus IhaCollapseGpu(const IhaCollapseGpuArgs& args, GpuStream stream);
// Its kernel, for d = 8 kLanes.
template <uint32_t kLanes, bool kXsa>
GpuStatus LaunchCollapseHeads(const IhaCollapseGpuArgs& args, GpuStream stream);

// R of the global form for the device: heads padded to 16, 32 or 64 rows of H P padded to 32 columns, `terms` such
// matrices side by side.
struct CollapseGpuLayout {
  uint32_t rows = 0;
  uint32_t columns = 0;
  uint32_t terms = 0;
  [[nodiscard]] constexpr size_t elements() const { return size_t{rows} * columns * terms; }
};
inline constexpr uint32_t kCollapseGpuMaxHeads = 64;
constexpr CollapseGpuLayout CollapseGpuLayoutFor(uint32_t heads, uint32_t pseudo, uint32_t terms) {
  return {heads <= 16 ? 16u : heads <= 32 ? 32u : 64u, (heads * pseudo + 31) / 32 * 32, terms};
}
// collapse: [H][H P] in fp32; terms: 1 if bf16 holds every value, else 2; packed: layout.elements().
void CollapseGpuPack(uint32_t heads, uint32_t pseudo, uint32_t terms, const float* collapse, uint16_t* packed);

struct IhaCollapseGlobalGpuArgs {
  const uint16_t* a = nullptr;
  const uint16_t* collapse = nullptr;  // packed
  uint16_t* out = nullptr;
  uint32_t terms = 1;
  uint32_t tokens = 0;
  uint32_t heads = 0;
  uint32_t pseudo = 0;
  uint32_t d = 0;
  const uint16_t* v = nullptr;                     // null: no XSA
  uint32_t max_shared_bytes = kGpuMaxSharedBytes;  // of a block on this device
};
inline constexpr uint32_t kCollapseGpuWarps = 4;
inline constexpr uint32_t kCollapseGpuColumns = 64;  // of a block without XSA
inline constexpr uint32_t kCollapseGpuTokens = 16;   // of a block
// Shared memory of a block with R of 16 `tiles` heads: d 0 for stages of each warp, without XSA; else two stages of 32
// rows of a and of v.
constexpr size_t CollapseGpuSharedBytes(const CollapseGpuLayout& r, uint32_t tiles, uint32_t xsa_d) {
  const size_t stages = xsa_d == 0 ? kCollapseGpuWarps * size_t{2 * 32 + 16} * 128 : 2 * 2 * 32 * size_t{xsa_d} * 2;
  return tiles * 16 * (size_t{r.columns} * r.terms * 2 + 16) + stages;
}
// 16 heads each that a block holds: all, or of the fewest equal parts that fit; 0: none do.
constexpr uint32_t CollapseGpuTilesFor(const CollapseGpuLayout& r, uint32_t xsa_d,
                                       uint32_t max_shared_bytes = kGpuMaxSharedBytes) {
  for (uint32_t tiles = r.rows / 16; tiles > 0; tiles /= 2) {
    if (CollapseGpuSharedBytes(r, tiles, xsa_d) <= max_shared_bytes) return tiles;
  }
  return 0;
}

GpuStatus IhaCollapseGlobalGpu(const IhaCollapseGlobalGpuArgs& args, GpuStream stream);
// Its kernels, for 16 kHeadTiles heads a block: 1, 2 or 4; with XSA heads of kD: 64, 128 or 256.
template <uint32_t kHeadTiles, uint32_t kTerms>
GpuStatus LaunchCollapseGlobal(const IhaCollapseGlobalGpuArgs& args, GpuStream stream);
template <uint32_t kHeadTiles, uint32_t kD>
GpuStatus LaunchCollapseGlobalXsa(const IhaCollapseGlobalGpuArgs& args, GpuStream stream);

}  // namespace iha::kernels
