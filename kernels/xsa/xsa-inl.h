// xsa-inl.h: the row operation of XSA (xsa.h), for the kernels that apply it.
//
// Included once per Highway target.
#if defined(IHA_KERNELS_XSA_XSA_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef IHA_KERNELS_XSA_XSA_INL_H_
#undef IHA_KERNELS_XSA_XSA_INL_H_
#else
#define IHA_KERNELS_XSA_XSA_INL_H_
#endif

#include <cmath>
#include <cstddef>

#include "kernels/support/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace iha::kernels::HWY_NAMESPACE {

// sum of x_i y_i in 16 lanes; rows are padded with zeros to a multiple of 16, and fma(0, 0, L) = L since L is never -0.
HWY_INLINE float LaneDot(const float* x, const float* y, size_t padded) {
  X16 sum = X16::Set(0.0f);
  for (size_t i = 0; i < padded; i += 16) sum = Fma(X16::Load(x + i), X16::Load(y + i), sum);
  alignas(64) float lanes[16];
  sum.Store(lanes);
  return Fold16(lanes);
}

// row -= its part along v; v is overwritten with u. Both padded with zeros to a multiple of 16.
HWY_INLINE void ExcludeValue(float* row, float* v, size_t padded) {
  const float norm = std::sqrt(LaneDot(v, v, padded));
  const X16 divisor = X16::Set(norm < 1e-12f ? 1e-12f : norm);  // NaN stays NaN
  for (size_t i = 0; i < padded; i += 16) Div(X16::Load(v + i), divisor).Store(v + i);
  const X16 s = Neg(X16::Set(LaneDot(row, v, padded)));
  for (size_t i = 0; i < padded; i += 16) Fma(s, X16::Load(v + i), X16::Load(row + i)).Store(row + i);
}

}  // namespace iha::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // toggle
