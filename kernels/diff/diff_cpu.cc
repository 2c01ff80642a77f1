#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/diff/diff_cpu.cc"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include "kernels/diff/diff.h"
#include "kernels/rmsnorm/rmsnorm_row-inl.h"
#include "kernels/support/row_chunks.h"
#include "kernels/support/sigmoid-inl.h"

HWY_BEFORE_NAMESPACE();
namespace iha::kernels::HWY_NAMESPACE {

// out = a - factor b
HWY_INLINE void SubtractScaled(const float* a, const float* b, const X16& factor, size_t d, float* out) {
  const X16 minus = Neg(factor);
  size_t i = 0;
  for (; i + 16 <= d; i += 16) Fma(minus, X16::Load(b + i), X16::Load(a + i)).Store(out + i);
  if (i < d) Fma(minus, X16::LoadN(b + i, d - i), X16::LoadN(a + i, d - i)).StoreN(out + i, d - i);
}

void GatedRows(const DiffShape& shape, const float* a, const float* logits, float* out, size_t r0, size_t r1) {
  const size_t d = shape.d;
  for (size_t r = r0; r < r1; ++r) {
    const float* pair = a + r * 2 * d;
    SubtractScaled(pair, pair + d, Sigmoid(X16::Set(logits[r])), d, out + r * d);
  }
}

void NormedRows(const DiffShape& shape, const DiffNorm& norm, const float* a, float* out, size_t r0, size_t r1) {
  const size_t d = shape.d;
  const RmsNormShape row{.rows = 1, .n = d, .ldx = d, .ldy = d, .eps = norm.eps};
  for (size_t r = r0; r < r1; ++r) {
    const float* pair = a + r * 2 * d;
    float* to = out + r * d;
    SubtractScaled(pair, pair + d, X16::Set(norm.lambda), d, to);
    RmsNormRow(row, to, norm.weight, to);
    for (size_t i = 0; i < d; ++i) to[i] *= norm.scale;
  }
}

}  // namespace iha::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace iha::kernels {
HWY_EXPORT(GatedRows);
HWY_EXPORT(NormedRows);

namespace {

double Dot(std::span<const float> x, std::span<const float> y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum = std::fma(static_cast<double>(x[i]), static_cast<double>(y[i]), sum);
  return sum;
}

}  // namespace

void DiffGated(const DiffShape& shape, const float* a, const float* logits, float* out, ParallelFor& parallel) {
  const auto rows = HWY_DYNAMIC_DISPATCH(GatedRows);
  ForRowChunks(shape.tokens * shape.pairs, shape.d, parallel,
               [&](size_t r0, size_t r1) { rows(shape, a, logits, out, r0, r1); });
}

void DiffNormed(const DiffShape& shape, const DiffNorm& norm, const float* a, float* out, ParallelFor& parallel) {
  const auto rows = HWY_DYNAMIC_DISPATCH(NormedRows);
  ForRowChunks(shape.tokens * shape.pairs, shape.d, parallel,
               [&](size_t r0, size_t r1) { rows(shape, norm, a, out, r0, r1); });
}

float DiffLambda(std::span<const float> q1, std::span<const float> k1, std::span<const float> q2,
                 std::span<const float> k2, double lambda_init) {
  return static_cast<float>(ExactExp(Dot(q1, k1)) - ExactExp(Dot(q2, k2)) + lambda_init);
}

}  // namespace iha::kernels
#endif
