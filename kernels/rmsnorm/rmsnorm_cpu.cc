#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rmsnorm/rmsnorm_cpu.cc"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/rmsnorm/rmsnorm.h"
#include "kernels/rmsnorm/rmsnorm_row-inl.h"
#include "kernels/support/row_chunks.h"

HWY_BEFORE_NAMESPACE();
namespace iha::kernels::HWY_NAMESPACE {

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
