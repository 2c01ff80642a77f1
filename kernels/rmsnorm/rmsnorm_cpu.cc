#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rmsnorm/rmsnorm_cpu.cc"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/rmsnorm/rmsnorm.h"
#include "kernels/support/lanes-inl.h"
#include "kernels/support/row_chunks.h"

HWY_BEFORE_NAMESPACE();
namespace iha::kernels::HWY_NAMESPACE {

void RmsNormRow(const RmsNormShape& shape, const float* x, const float* weight, float* y) {
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

void RmsNormRows(const RmsNormShape& shape, const float* x, const float* weight, float* y, size_t r0, size_t r1) {
  for (size_t row = r0; row < r1; ++row) RmsNormRow(shape, x + row * shape.ldx, weight, y + row * shape.ldy);
}

}  // namespace iha::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace iha::kernels {
HWY_EXPORT(RmsNormRows);

void RmsNorm(const RmsNormShape& shape, const float* x, const float* weight, float* y, ParallelFor& parallel) {
  const auto rows = HWY_DYNAMIC_DISPATCH(RmsNormRows);
  ForRowChunks(shape.rows, shape.n, parallel, [&](size_t r0, size_t r1) { rows(shape, x, weight, y, r0, r1); });
}

}  // namespace iha::kernels
#endif
