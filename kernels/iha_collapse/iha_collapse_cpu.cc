#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/iha_collapse/iha_collapse_cpu.cc"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "kernels/iha_collapse/iha_collapse.h"
#include "kernels/matmul/tile-inl.h"
#include "kernels/support/aligned.h"
#include "kernels/support/lanes.h"
#include "kernels/support/row_chunks.h"
#include "kernels/xsa/xsa-inl.h"

HWY_BEFORE_NAMESPACE();
namespace iha::kernels::HWY_NAMESPACE {

HWY_INLINE void CopyPadded(const float* from, size_t d, size_t padded, float* to) {
  std::memcpy(to, from, d * sizeof(float));
  std::fill(to + d, to + padded, 0.0f);
}

// rows: scratch of (rows + heads + 1) * padded floats, used where whole lanes cannot be read or XSA changes a row.
void CollapseToken(const IhaCollapseShape& shape, const float* collapse, const float* a, const float* v, float* out,
                   float* scratch) {
  const size_t heads = shape.heads, pseudo = shape.pseudo, d = shape.d, rows = heads * pseudo;
  const size_t padded = RoundUp16(d);
  const float* z = a;
  if (v != nullptr || padded != d) {
    float* u = scratch + rows * padded;
    for (size_t r = 0; r < rows; ++r) {
      CopyPadded(a + r * d, d, padded, scratch + r * padded);
      if (v == nullptr) continue;
      CopyPadded(v + r * d, d, padded, u);
      ExcludeValue(scratch + r * padded, u, padded);
    }
    z = scratch;
  }
  float* to = padded == d ? out : scratch + (rows + 1) * padded;
  const auto reader = [=](size_t first) {
    return [=](size_t p) { return ReadF32{z + first * padded + p * 16, 16, padded}; };
  };
  if (shape.global) {
    const size_t tiles = (heads + ReadF32::kMaxRows - 1) / ReadF32::kMaxRows;
    for (size_t t = 0; t < tiles; ++t) {
      const size_t h0 = heads * t / tiles, h1 = heads * (t + 1) / tiles;
      RunPanels<ReadF32>(static_cast<int>(h1 - h0), padded / 16, collapse + h0 * rows, rows, 1, reader(0),
                         to + h0 * padded, padded, 0, rows, true);
    }
  } else {
    for (size_t h = 0; h < heads; ++h) {
      RunPanels<ReadF32>(1, padded / 16, collapse + h * pseudo, pseudo, 1, reader(h * pseudo), to + h * padded, padded,
                         0, pseudo, true);
    }
  }
  if (to == out) return;
  for (size_t h = 0; h < heads; ++h) std::memcpy(out + h * d, to + h * padded, d * sizeof(float));
}

void CollapseTokens(const IhaCollapseShape& shape, const float* collapse, const float* a, const float* v, float* out,
                    size_t t0, size_t t1) {
  static thread_local AlignedArray<float> scratch;
  static thread_local size_t capacity = 0;
  const size_t heads = shape.heads, rows = heads * shape.pseudo, d = shape.d;
  const size_t needed = (rows + heads + 1) * RoundUp16(d);
  if (capacity < needed) {
    scratch = MakeAligned<float>(needed);
    capacity = needed;  // after it: it may throw
  }
  for (size_t t = t0; t < t1; ++t) {
    CollapseToken(shape, collapse, a + t * rows * d, v == nullptr ? nullptr : v + t * rows * d, out + t * heads * d,
                  scratch.get());
  }
}

}  // namespace iha::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace iha::kernels {
HWY_EXPORT(CollapseTokens);

void IhaCollapse(const IhaCollapseShape& shape, const float* collapse, const float* a, const float* v, float* out,
                 ParallelFor& parallel) {
  const auto tokens = HWY_DYNAMIC_DISPATCH(CollapseTokens);
  const size_t work = shape.heads * shape.pseudo * shape.d * (shape.global ? shape.heads / 8 + 1 : 1);
  ForRowChunks(shape.tokens, work, parallel, [&](size_t t0, size_t t1) { tokens(shape, collapse, a, v, out, t0, t1); });
}

}  // namespace iha::kernels
#endif
