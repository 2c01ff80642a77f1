#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/mlp/mlp_cpu.cc"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include "kernels/mlp/gelu_erf.h"
#include "kernels/mlp/mlp.h"
#include "kernels/support/row_chunks.h"
#include "kernels/support/sigmoid-inl.h"

HWY_BEFORE_NAMESPACE();
namespace iha::kernels::HWY_NAMESPACE {

// GeluErf of gelu_erf.h, lane by lane.
HWY_INLINE X16 GeluErfLanes(const X16& x) {
  using namespace gelu_constants;
  const X16 max_z = X16::Set(kMaxZ), center = X16::Set(kCenter), minus_half = X16::Set(-0.5f);
  const X16 magnitude = Abs(x);
  const X16 z = IfNonNegative(Sub(max_z, magnitude), magnitude, max_z);
  const X16 h = Mul(z, z), e = Fma(z, z, Neg(h));
  const X16 exp_h = ExpNeg(Mul(minus_half, h)), gauss = Fma(exp_h, Mul(minus_half, e), exp_h);
  const X16 divisor = Add(z, center), s = Div(Sub(z, center), divisor);
  X16 p = X16::Set(kP[kDegree]);
  for (int i = kDegree - 1; i >= 0; --i) p = Fma(p, s, X16::Set(kP[i]));
  const X16 q = Div(Mul(gauss, p), divisor);
  return Mul(x, IfNonNegative(x, Sub(X16::Set(1.0f), q), q));
}

template <Activation kActivation>
HWY_INLINE X16 Activate(const X16& x) {
  if constexpr (kActivation == Activation::kSilu) {
    return Mul(x, Sigmoid(x));
  } else if constexpr (kActivation == Activation::kGeluTanh) {
    const X16 cubic = Fma(Mul(X16::Set(0.044715f), x), Mul(x, x), x);
    return Mul(x, Sigmoid(Mul(X16::Set(1.59576912160573071f), cubic)));  // 2 sqrt(2 / pi)
  } else if constexpr (kActivation == Activation::kGeluErf) {
    return GeluErfLanes(x);
  } else {
    static_assert(kActivation == Activation::kRelu);
    // A NaN fails both comparisons and is kept; -0 passes the first.
    return IfNonNegative(x, x, IfNonNegative(Neg(x), X16::Set(0.0f), x));
  }
}

template <Activation kActivation>
void Row(const float* gate, const float* up, size_t n, float* out) {
  size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const X16 a = Activate<kActivation>(X16::Load(gate + i));
    (up == nullptr ? a : Mul(a, X16::Load(up + i))).Store(out + i);
  }
  if (i < n) {
    const X16 a = Activate<kActivation>(X16::LoadN(gate + i, n - i));
    (up == nullptr ? a : Mul(a, X16::LoadN(up + i, n - i))).StoreN(out + i, n - i);
  }
}

void ActivationRow(Activation activation, const float* gate, const float* up, size_t n, float* out) {
  switch (activation) {
    case Activation::kSilu:
      return Row<Activation::kSilu>(gate, up, n, out);
    case Activation::kGeluTanh:
      return Row<Activation::kGeluTanh>(gate, up, n, out);
    case Activation::kGeluErf:
      return Row<Activation::kGeluErf>(gate, up, n, out);
    case Activation::kRelu:
      return Row<Activation::kRelu>(gate, up, n, out);
  }
}

}  // namespace iha::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace iha::kernels {
HWY_EXPORT(ActivationRow);

void ActivationMul(Activation activation, const MlpShape& shape, const float* gate, const float* up, float* out,
                   ParallelFor& parallel) {
  const auto one_row = HWY_DYNAMIC_DISPATCH(ActivationRow);
  ForRowChunks(shape.rows, shape.n, parallel, [&](size_t r0, size_t r1) {
    for (size_t r = r0; r < r1; ++r) {
      one_row(activation, gate + r * shape.ld_gate, up == nullptr ? nullptr : up + r * shape.ld_up, shape.n,
              out + r * shape.ld_out);
    }
  });
}

}  // namespace iha::kernels
#endif
