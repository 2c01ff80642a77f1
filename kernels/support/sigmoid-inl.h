// sigmoid-inl.h: the logistic function on 16 lanes (NUM-7), for activations and gates.
//
// Included once per Highway target.
#if defined(IHA_KERNELS_SUPPORT_SIGMOID_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef IHA_KERNELS_SUPPORT_SIGMOID_INL_H_
#undef IHA_KERNELS_SUPPORT_SIGMOID_INL_H_
#else
#define IHA_KERNELS_SUPPORT_SIGMOID_INL_H_
#endif

#include "kernels/support/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace iha::kernels::HWY_NAMESPACE {

// 1 / (1 + exp(-z)) without overflow: e = exp(-|z|), (z >= 0 ? 1 : e) / (1 + e). NaN for NaN.
HWY_INLINE X16 Sigmoid(const X16& z) {
  const X16 one = X16::Set(1.0f);
  const X16 e = ExpNeg(Neg(Abs(z)));
  return Div(IfNonNegative(z, one, e), Add(one, e));
}

}  // namespace iha::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // toggle
