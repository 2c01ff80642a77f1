// block-inl.h: how kernels read a key block (layout in attention.h), and one block's step of a softmax.
//
// Included once per Highway target.
#if defined(IHA_KERNELS_ATTENTION_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef IHA_KERNELS_ATTENTION_BLOCK_INL_H_
#undef IHA_KERNELS_ATTENTION_BLOCK_INL_H_
#else
#define IHA_KERNELS_ATTENTION_BLOCK_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <limits>

#include "kernels/attention/attention.h"
#include "kernels/matmul/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace iha::kernels::HWY_NAMESPACE {

// The readers of a block's K (panels = sub-blocks of 16 keys, k = feature) and V (panels = 16 features, k = key).
template <class R, class T>
HWY_INLINE auto KeyReader(const KvLayout& layout, const T* block, size_t key, size_t first_panel) {
  return [k = block + key * layout.k_elements(), d = layout.d, first_panel](size_t p) {
    return R{k + (first_panel + p) * d * 16, d * 16, 16};
  };
}
template <class R, class T>
HWY_INLINE auto ValueReader(const KvLayout& layout, const T* block, size_t first_key) {
  return [v = block + layout.v_begin() + first_key * layout.v_stride(), stride = layout.v_stride()](size_t p) {
    return R{v + p * 16, 16, stride};
  };
}

// Slots of the block at position `base` that a row sees: begin .. end - 1, begin == end if none.
struct VisibleSlots {
  size_t begin = 0, end = 0;
  [[nodiscard]] constexpr bool empty() const { return begin == end; }
};
HWY_INLINE VisibleSlots FindSlots(uint32_t first, uint32_t last, size_t base) {
  const size_t row_first = first, row_end = size_t{last} + 1;
  const size_t begin = std::min(row_first > base ? row_first - base : 0, kKeyBlock);
  return {begin, std::max(begin, std::min(row_end > base ? row_end - base : 0, kKeyBlock))};
}

// The largest lane: the order does not matter, except for a NaN, which may win or lose.
HWY_INLINE float MaxOfLanes(const X16& x) {
  V all = x.v[0];
  for (int j = 1; j < kVectors; ++j) all = VMax(all, x.v[j]);
#if IHA_FUSED
  return hn::GetLane(hn::MaxOfLanes(D(), all));
#else
  return all.x;
#endif
}

// Invisible scores become -inf; returns the larger of `max` and the visible ones.
HWY_INLINE float MaskAndMax(float* s, VisibleSlots slots, float max) {
  constexpr float kNegInf = -std::numeric_limits<float>::infinity();
  for (size_t j = 0; j < slots.begin; ++j) s[j] = kNegInf;
  for (size_t j = slots.end; j < kKeyBlock; ++j) s[j] = kNegInf;
  const X16 block_max = Max(Max(X16::Load(s), X16::Load(s + 16)), Max(X16::Load(s + 32), X16::Load(s + 48)));
  const float largest = MaxOfLanes(block_max);
  return largest > max ? largest : max;
}

// p_j = exp(s_j - max), added to the 16 lanes of `sum`; p replaces s.
HWY_INLINE X16 ExpAndSum(float* s, float max, X16 sum) {
  const X16 shift = X16::Set(max);
  for (size_t j = 0; j < kKeyBlock; j += 16) {
    // Invisible keys: exp(-inf) = +0, and L + 0 = L since L >= +0.
    const X16 p = ExpNeg(Sub(X16::Load(s + j), shift));
    p.Store(s + j);
    sum = Add(sum, p);
  }
  return sum;
}

// acc[m] += p[m] V over the keys that row m sees, in increasing key order per row: a row's own keys before the range
// that all rows see, that range in one tile, then its own keys after it. p: [count][64]; acc: rows of `ld_acc` floats;
// slots(m): what row m sees. ahead: fetched by the tile of what all rows see.
template <class R, class T, class SlotsOf>
HWY_INLINE void AddValues(const KvLayout& layout, const T* block, const float* p, const SlotsOf& slots, int count,
                          float* acc, size_t ld_acc, Ahead ahead = {}) {
  const size_t panels = layout.v_stride() / 16;
  const auto run = [&](int m, int rows, size_t begin, size_t end, Ahead fetch = {}) {
    if (begin >= end) return;
    RunPanels<R>(rows, panels, p + static_cast<size_t>(m) * kKeyBlock + begin, kKeyBlock, 1,
                 ValueReader<R>(layout, block, begin), acc + static_cast<size_t>(m) * ld_acc, ld_acc, 0, end - begin,
                 false, fetch);
  };
  size_t common_begin = 0, common_end = kKeyBlock;
  for (int m = 0; m < count; ++m) {
    common_begin = std::max(common_begin, slots(m).begin);
    common_end = std::min(common_end, slots(m).end);
  }
  if (common_begin >= common_end) {
    for (int m = 0; m < count; ++m) run(m, 1, slots(m).begin, slots(m).end);
    return;
  }
  for (int m = 0; m < count; ++m) run(m, 1, slots(m).begin, common_begin);
  run(0, count, common_begin, common_end, ahead);
  for (int m = 0; m < count; ++m) run(m, 1, common_end, slots(m).end);
}

}  // namespace iha::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // toggle
