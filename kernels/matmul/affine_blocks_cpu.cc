// The search of affine_blocks.h. Trying a pair of scale and offset on 16 values costs a few vector operations, so
// candidates are simply tried, the likely ones first.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/affine_blocks_cpu.cc"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/matmul/affine_blocks.h"
#include "kernels/support/lanes-inl.h"

#ifndef IHA_KERNELS_AFFINE_BLOCKS_ONCE
#define IHA_KERNELS_AFFINE_BLOCKS_ONCE
namespace iha::kernels {
// To 17 significant bits: scales and minima are fp16 (11 bits) times integers of 6 bits at most.
inline float To17Bits(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  return static_cast<float>(std::bit_cast<double>((bits + (uint64_t{1} << 35)) >> 36 << 36));
}
}  // namespace iha::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace iha::kernels::HWY_NAMESPACE {

// Whether scale and offset give all 16 values; writes the block then.
#if IHA_FUSED
HWY_INLINE bool Gives(const float* HWY_RESTRICT values, float scale, float offset, AffineBlock* block) {
  const D d;
  const hn::RebindToSigned<D> di;
  const V inverse = VSet(1.0f / scale), vs = VSet(scale), vo = VSet(offset);
  const auto least = hn::Set(di, -128), most = hn::Set(di, 127);
  decltype(hn::Zero(di)) q[kVectors];
  for (int j = 0; j < kVectors; ++j) {
    const V value = VLoad(values + j * kLanes);
    q[j] = hn::NearestInt(hn::Mul(hn::Sub(value, vo), inverse));
    const V again = hn::MulAdd(vs, hn::ConvertTo(d, q[j]), vo);
    const auto same = hn::Eq(hn::BitCast(di, again), hn::BitCast(di, value));
    const auto fits = hn::Eq(hn::Min(hn::Max(q[j], least), most), q[j]);
    if (!hn::AllTrue(di, hn::And(same, fits))) return false;
  }
  block->scale = scale;
  block->offset = offset;
  const hn::Rebind<int8_t, D> d8;
  for (int j = 0; j < kVectors; ++j) hn::StoreU(hn::DemoteTo(d8, q[j]), d8, block->q + j * kLanes);
  return true;
}
struct Range {
  float lo, hi;
};
HWY_INLINE Range RangeOf(const float* values) {
  const D d;
  V lo = VLoad(values), hi = lo;
  for (int j = 1; j < kVectors; ++j) {
    lo = hn::Min(lo, VLoad(values + j * kLanes));
    hi = hn::Max(hi, VLoad(values + j * kLanes));
  }
  return {hn::GetLane(hn::MinOfLanes(d, lo)), hn::GetLane(hn::MaxOfLanes(d, hi))};
}
HWY_INLINE bool AnyMinusZero(const float* values) {
  const hn::RebindToSigned<D> di;
  const auto minus_zero = hn::BitCast(di, VSet(-0.0f));
  bool any = false;
  for (int j = 0; j < kVectors; ++j) {
    any |= !hn::AllFalse(di, hn::Eq(hn::BitCast(di, VLoad(values + j * kLanes)), minus_zero));
  }
  return any;
}
#else
inline bool Gives(const float* values, float scale, float offset, AffineBlock* block) {
  AffineBlock found{scale, offset, {}};
  for (size_t i = 0; i < kAffineBlock; ++i) {
    const float steps = std::nearbyint((values[i] - offset) * (1.0f / scale));
    if (!(steps >= -128.0f && steps <= 127.0f)) return false;
    found.q[i] = static_cast<int8_t>(steps);
    const float again = std::fma(scale, static_cast<float>(found.q[i]), offset);
    if (std::bit_cast<uint32_t>(again) != std::bit_cast<uint32_t>(values[i])) return false;
  }
  *block = found;
  return true;
}
struct Range {
  float lo, hi;
};
inline Range RangeOf(const float* values) {
  return {*std::min_element(values, values + kAffineBlock), *std::max_element(values, values + kAffineBlock)};
}
inline bool AnyMinusZero(const float* values) {
  return std::any_of(values, values + kAffineBlock, [](float x) { return x == 0.0f && std::signbit(x); });
}
#endif

// scale * q only: the largest magnitude is one of its multiples.
inline bool Symmetric(const float* values, Range range, AffineHints& hints, AffineBlock* block) {
  const double largest = std::max(-range.lo, range.hi);
  const double sign = AnyMinusZero(values) ? -1 : 1;
  const auto tried = [&](int q) {
    const auto scale = static_cast<float>(sign * largest / q);
    return Gives(values, scale, -0.0f, block) ||
           (q == 128 && Gives(values, -scale, -0.0f, block));  // -128 fits, 128 not
  };
  for (int q = hints.largest_q; q > 0; --q) {
    if (tried(q)) return true;
  }
  for (int q = hints.largest_q + 1; q <= 128; ++q) {
    if (!tried(q)) continue;
    hints.largest_q = q <= 16 ? 16 : q <= 32 ? 32 : 128;
    return true;
  }
  return false;
}

// The smallest value as the offset. Exact sums: any such offset does.
inline bool FromTheSmallest(const float* values, Range range, int first, int last, AffineBlock* block) {
  const double width = static_cast<double>(range.hi) - range.lo;
  for (int span = last; span >= first; --span) {
    if (Gives(values, To17Bits(width / span), range.lo, block)) return true;
  }
  return false;
}

// Rounded sums: the steps must nearly be whole; the offset is one that each value leaves room for, where the smallest
// value is `base` steps away.
inline bool WithRoundedSums(const float* values, Range range, int span, AffineBlock* block) {
  const double scale = To17Bits((static_cast<double>(range.hi) - range.lo) / span);
  double q[kAffineBlock], room[kAffineBlock];
  for (size_t i = 0; i < kAffineBlock; ++i) {
    const double steps = (static_cast<double>(values[i]) - range.lo) / scale;
    q[i] = std::nearbyint(steps);
    if (!(std::fabs(steps - q[i]) < 1.0 / 16)) return false;
    const float magnitude = std::fabs(values[i]);
    room[i] = (std::nextafter(magnitude, HUGE_VALF) - static_cast<double>(magnitude)) / 2;
  }
  for (int base = 0; base + span <= 31; ++base) {
    double least = -HUGE_VAL, most = HUGE_VAL;
    for (size_t i = 0; i < kAffineBlock; ++i) {
      const double offset = static_cast<double>(values[i]) - scale * (q[i] + base);
      least = std::max(least, offset - room[i]);
      most = std::min(most, offset + room[i]);
    }
    if (least > most) continue;
    const double middle = least + (most - least) / 2;
    if (Gives(values, static_cast<float>(scale), To17Bits(middle), block)) return true;
    if (Gives(values, static_cast<float>(scale), static_cast<float>(middle), block)) return true;
  }
  return false;
}

inline bool WithOffset(const float* values, Range range, AffineHints& hints, AffineBlock* block) {
  constexpr int kFour = 15, kFive = 31;
  if (hints.five_bits && FromTheSmallest(values, range, kFour + 1, kFive, block)) return true;
  if (FromTheSmallest(values, range, 1, kFour, block)) return true;
  if (!hints.five_bits && FromTheSmallest(values, range, kFour + 1, kFive, block)) return hints.five_bits = true;
  for (int span = 1; span <= kFive; ++span) {
    if (WithRoundedSums(values, range, span, block)) return true;
  }
  return false;
}

// Zeros of both signs are what a scale of 0 makes of its q: 0 * q + -0.
inline bool OneValue(const float* values, AffineBlock* block) {
  if (!std::all_of(values, values + kAffineBlock, [&](float x) { return x == values[0]; })) return false;  // NaN
  const bool zeros = values[0] == 0.0f;
  *block = {0.0f, zeros ? -0.0f : values[0], {}};
  for (size_t i = 0; zeros && i < kAffineBlock; ++i) block->q[i] = std::signbit(values[i]) ? -1 : 1;
  return true;
}

inline bool FindBlock(const float* values, AffineHints& hints, AffineBlock* block) {
  if (Gives(values, hints.scale, hints.offset, block)) return true;
  const Range range = RangeOf(values);
  if (!std::isfinite(range.lo) || !std::isfinite(range.hi)) return false;  // a NaN that hides here gives no bits below
  if (range.lo == range.hi) {
    return OneValue(values, block);
  }
  bool found = hints.symmetric ? Symmetric(values, range, hints, block) : WithOffset(values, range, hints, block);
  if (!found) {
    found = hints.symmetric ? WithOffset(values, range, hints, block) : Symmetric(values, range, hints, block);
    if (found) hints.symmetric = !hints.symmetric;
  }
  hints.scale = block->scale;
  hints.offset = block->offset;
  return found;
}

bool FindBlocks(const float* values, size_t n, AffineHints& hints, AffineBlock* blocks) {
  alignas(64) float piece[kAffineBlock];
  for (size_t i = 0; i < n; i += kAffineBlock, ++blocks) {
    const size_t count = std::min(kAffineBlock, n - i);
    std::memcpy(piece, values + i, count * sizeof(float));
    // A short block goes on with its last value: no new one, so no further condition.
    std::fill(piece + count, piece + kAffineBlock, piece[count - 1]);
    if (!FindBlock(piece, hints, blocks)) return false;
    std::fill(blocks->q + count, blocks->q + kAffineBlock, int8_t{0});
  }
  return true;
}

}  // namespace iha::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace iha::kernels {
HWY_EXPORT(FindBlocks);

bool FindAffineBlocks(const float* values, size_t n, AffineHints& hints, AffineBlock* blocks) {
  return HWY_DYNAMIC_DISPATCH(FindBlocks)(values, n, hints, blocks);
}

}  // namespace iha::kernels
#endif
