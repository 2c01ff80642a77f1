// rmsnorm_row-inl.h: one row of RMSNorm (NUM-6), for the kernels that normalise.
//
// Included once per Highway target.
#if defined(IHA_KERNELS_RMSNORM_RMSNORM_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef IHA_KERNELS_RMSNORM_RMSNORM_ROW_INL_H_
#undef IHA_KERNELS_RMSNORM_RMSNORM_ROW_INL_H_
#else
#define IHA_KERNELS_RMSNORM_RMSNORM_ROW_INL_H_
#endif

#include <cstddef>

#include "kernels/rmsnorm/rmsnorm.h"
#include "kernels/support/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace iha::kernels::HWY_NAMESPACE {

// Uses n, eps and weight_plus_one of `shape`; x and y may be the same row.
HWY_INLINE void RmsNormRow(const RmsNormShape& shape, const float* x, const float* weight, float* y) {
  const size_t n = shape.n, whole = n / 16 * 16;
  X16 sum = X16::Set(0.0f);
  for (size_t i = 0; i < whole; i += 16) {
    const X16 v = X16::Load(x + i);
    sum = Fma(v, v, sum);
  }
  if (whole < n) {  // zeros in the missing lanes: fma(0, 0, L) = L since L >= +0
    const X16 v = X16::LoadN(x + whole, n - whole);
    sum = Fma(v, v, sum);
  }
  alignas(64) float lanes[16];
  sum.Store(lanes);
  const X16 r = X16::Set(InvSqrt(Fold16(lanes) / static_cast<float>(n) + shape.eps));
  const X16 one = X16::Set(1.0f);
  const auto scaled = [&](const X16& v, auto load_weight) {
    const X16 u = Mul(v, r);
    if (weight == nullptr) return u;
    const X16 w = load_weight();
    return Mul(u, shape.weight_plus_one ? Add(w, one) : w);
  };
  for (size_t i = 0; i < whole; i += 16) {
    scaled(X16::Load(x + i), [&] { return X16::Load(weight + i); }).Store(y + i);
  }
  if (whole < n) {
    const size_t rest = n - whole;
    scaled(X16::LoadN(x + whole, rest), [&] { return X16::LoadN(weight + whole, rest); }).StoreN(y + whole, rest);
  }
}

}  // namespace iha::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // toggle
