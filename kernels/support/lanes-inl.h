// lanes-inl.h: 16 fp32 lanes, the width in which every kernel is written, on any vector target.
//
// Included once per Highway target (inside foreach_target). X16 is 1 AVX-512, 2 AVX or 4 NEON registers. Targets whose
// MulAdd is not fused (SSE, emulation) use 16 floats and std::fma: slow, the same bits. All operations are one IEEE
// operation per lane, so X16 code cannot differ between targets. Max of a NaN is the one exception: which operand wins
// differs, so no kernel relies on it.
#if defined(IHA_KERNELS_SUPPORT_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef IHA_KERNELS_SUPPORT_LANES_INL_H_
#undef IHA_KERNELS_SUPPORT_LANES_INL_H_
#else
#define IHA_KERNELS_SUPPORT_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/support/exact_math.h"
#include "kernels/support/small_float.h"

#undef IHA_FUSED
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_SSE4
#define IHA_FUSED 0
#else
#define IHA_FUSED 1
#endif
#undef IHA_WIDE_REGISTER_FILE  // 32 vector registers instead of 16
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3) || HWY_ARCH_ARM_A64
#define IHA_WIDE_REGISTER_FILE 1
#else
#define IHA_WIDE_REGISTER_FILE 0
#endif

HWY_BEFORE_NAMESPACE();
namespace iha::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if IHA_FUSED
using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
#else
// One lane at a time: the tile code below and in tile-inl.h is written for V and kLanes.
struct V {
  float x;
};
inline constexpr int kLanes = 1;
#endif
inline constexpr int kVectors = 16 / kLanes;

#if IHA_FUSED
HWY_INLINE V VSet(float x) { return hn::Set(D(), x); }
HWY_INLINE V VLoad(const float* p) { return hn::LoadU(D(), p); }
HWY_INLINE void VStore(V v, float* p) { hn::StoreU(v, D(), p); }
HWY_INLINE V VFma(V a, V b, V c) { return hn::MulAdd(a, b, c); }
HWY_INLINE V VAdd(V a, V b) { return hn::Add(a, b); }
HWY_INLINE V VSub(V a, V b) { return hn::Sub(a, b); }
HWY_INLINE V VMul(V a, V b) { return hn::Mul(a, b); }
HWY_INLINE V VDiv(V a, V b) { return hn::Div(a, b); }
HWY_INLINE V VMax(V a, V b) { return hn::Max(a, b); }
HWY_INLINE V VNeg(V a) { return hn::Neg(a); }
HWY_INLINE V VAbs(V a) { return hn::Abs(a); }
// a >= 0 ? yes : no; NaN takes no.
HWY_INLINE V VIfNonNegative(V a, V yes, V no) { return hn::IfThenElse(hn::Ge(a, hn::Zero(D())), yes, no); }
HWY_INLINE V VLoadBF16(const uint16_t* p) {
  const hn::Rebind<uint16_t, D> d16;
  return hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<D>(), hn::LoadU(d16, p))));
}
HWY_INLINE V VLoadF16(const uint16_t* p) {
  const hn::Rebind<hwy::float16_t, D> d16;
  return hn::PromoteTo(D(), hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(p)));
}
HWY_INLINE V VLoadI8(const int8_t* p) {
  const hn::Rebind<int8_t, D> d8;
  return hn::ConvertTo(D(), hn::PromoteTo(hn::RebindToSigned<D>(), hn::LoadU(d8, p)));
}
// One half of 16-bit pairs in 32-bit words, low half first.
template <int kHalf>
HWY_INLINE V VLoadBF16Half(const uint32_t* p) {
  const hn::RebindToUnsigned<D> du;
  const auto u = hn::LoadU(du, p);
  if constexpr (kHalf == 0) {
    return hn::BitCast(D(), hn::ShiftLeft<16>(u));
  } else {
    return hn::BitCast(D(), hn::And(u, hn::Set(du, 0xFFFF0000u)));
  }
}
// ExpNeg of exact_math.h, lane by lane. Adding 1.5 * 2^23 rounds to a whole number, ties to even, and leaves it in the
// low bits of the sum, from where it goes into the exponent.
HWY_INLINE V VExpNeg(V x) {
  using namespace exp_constants;
  const D d;
  const hn::RebindToUnsigned<D> du;
  const V magic = hn::Set(d, 12582912.0f);
  const V shifted = hn::Add(hn::Mul(x, hn::Set(d, kLog2E)), magic);
  const V n = hn::Sub(shifted, magic);
  V r = hn::MulAdd(n, hn::Set(d, -kLn2Hi), x);
  r = hn::MulAdd(n, hn::Set(d, -kLn2Lo), r);
  V p = hn::MulAdd(hn::Set(d, kC7), r, hn::Set(d, kC6));
  p = hn::MulAdd(p, r, hn::Set(d, kC5));
  p = hn::MulAdd(p, r, hn::Set(d, kC4));
  p = hn::MulAdd(p, r, hn::Set(d, kC3));
  p = hn::MulAdd(p, r, hn::Set(d, kC2));
  p = hn::Add(hn::Set(d, 1.0f), hn::MulAdd(hn::Mul(r, r), p, r));
  p = hn::BitCast(d, hn::Add(hn::BitCast(du, p), hn::ShiftLeft<23>(hn::BitCast(du, shifted))));
  // A NaN is not below kMin, nor is it p any more: the exponent may have gone anywhere.
  p = hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, kMin)), p);
  return hn::IfThenElse(hn::Eq(x, x), p, x);
}
#else
HWY_INLINE V VSet(float x) { return {x}; }
HWY_INLINE V VLoad(const float* p) { return {*p}; }
HWY_INLINE void VStore(V v, float* p) { *p = v.x; }
HWY_INLINE V VFma(V a, V b, V c) { return {std::fma(a.x, b.x, c.x)}; }
HWY_INLINE V VAdd(V a, V b) { return {a.x + b.x}; }
HWY_INLINE V VSub(V a, V b) { return {a.x - b.x}; }
HWY_INLINE V VMul(V a, V b) { return {a.x * b.x}; }
HWY_INLINE V VDiv(V a, V b) { return {a.x / b.x}; }
HWY_INLINE V VMax(V a, V b) { return {a.x > b.x ? a.x : b.x}; }
HWY_INLINE V VNeg(V a) { return {-a.x}; }
HWY_INLINE V VAbs(V a) { return {std::fabs(a.x)}; }
HWY_INLINE V VIfNonNegative(V a, V yes, V no) { return a.x >= 0 ? yes : no; }
HWY_INLINE V VLoadBF16(const uint16_t* p) { return {WidenBF16(*p)}; }
HWY_INLINE V VLoadF16(const uint16_t* p) { return {WidenF16(*p)}; }
HWY_INLINE V VLoadI8(const int8_t* p) { return {static_cast<float>(*p)}; }
template <int kHalf>
HWY_INLINE V VLoadBF16Half(const uint32_t* p) {
  return {WidenBF16(static_cast<uint16_t>(kHalf == 0 ? *p & 0xFFFFu : *p >> 16))};
}
HWY_INLINE V VExpNeg(V x) { return {ExpNeg(x.x)}; }
#endif

// 16 lanes; the operations apply lane by lane.
struct X16 {
  V v[kVectors];

  static HWY_INLINE X16 Set(float x) {
    X16 r;
    for (int j = 0; j < kVectors; ++j) r.v[j] = VSet(x);
    return r;
  }
  static HWY_INLINE X16 Load(const float* p) {
    X16 r;
    for (int j = 0; j < kVectors; ++j) r.v[j] = VLoad(p + j * kLanes);
    return r;
  }
  // The first n lanes, zeros above; n <= 16. Never reads past p[n - 1].
  static HWY_INLINE X16 LoadN(const float* p, size_t n) {
    alignas(64) float t[16] = {};
    std::memcpy(t, p, n * sizeof(float));
    return Load(t);
  }
  HWY_INLINE void Store(float* p) const {
    for (int j = 0; j < kVectors; ++j) VStore(v[j], p + j * kLanes);
  }
  HWY_INLINE void StoreN(float* p, size_t n) const {
    alignas(64) float t[16];
    Store(t);
    std::memcpy(p, t, n * sizeof(float));
  }
};
#define IHA_LANEWISE2(Name)                                              \
  HWY_INLINE X16 Name(const X16& a, const X16& b) {                      \
    X16 r;                                                               \
    for (int j = 0; j < kVectors; ++j) r.v[j] = V##Name(a.v[j], b.v[j]); \
    return r;                                                            \
  }
#define IHA_LANEWISE1(Name)                                      \
  HWY_INLINE X16 Name(const X16& a) {                            \
    X16 r;                                                       \
    for (int j = 0; j < kVectors; ++j) r.v[j] = V##Name(a.v[j]); \
    return r;                                                    \
  }
IHA_LANEWISE2(Add)
IHA_LANEWISE2(Sub)
IHA_LANEWISE2(Mul)
IHA_LANEWISE2(Div)
IHA_LANEWISE2(Max)
IHA_LANEWISE1(Neg)
IHA_LANEWISE1(Abs)
IHA_LANEWISE1(ExpNeg)
#undef IHA_LANEWISE1
#undef IHA_LANEWISE2
HWY_INLINE X16 Fma(const X16& a, const X16& b, const X16& c) {
  X16 r;
  for (int j = 0; j < kVectors; ++j) r.v[j] = VFma(a.v[j], b.v[j], c.v[j]);
  return r;
}
HWY_INLINE X16 IfNonNegative(const X16& a, const X16& yes, const X16& no) {
  X16 r;
  for (int j = 0; j < kVectors; ++j) r.v[j] = VIfNonNegative(a.v[j], yes.v[j], no.v[j]);
  return r;
}

}  // namespace iha::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // toggle
