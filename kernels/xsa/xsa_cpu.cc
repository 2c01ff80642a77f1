#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/xsa/xsa_cpu.cc"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "kernels/support/lanes.h"
#include "kernels/support/row_chunks.h"
#include "kernels/xsa/xsa-inl.h"
#include "kernels/xsa/xsa.h"

HWY_BEFORE_NAMESPACE();
namespace iha::kernels::HWY_NAMESPACE {

void XsaTokens(const XsaShape& shape, float* y, const float* v, size_t t0, size_t t1) {
  alignas(64) float row[kXsaMaxDim], value[kXsaMaxDim];  // a multiple of 16
  const size_t d = shape.d, padded = RoundUp16(d);
  std::fill(row + d, row + padded, 0.0f);
  std::fill(value + d, value + padded, 0.0f);
  for (size_t t = t0; t < t1; ++t) {
    for (size_t h = 0; h < shape.heads; ++h) {
      float* at = y + t * shape.y_stride + h * d;
      std::memcpy(row, at, d * sizeof(float));
      std::memcpy(value, v + t * shape.v_stride + h / shape.group * d, d * sizeof(float));
      ExcludeValue(row, value, padded);
      std::memcpy(at, row, d * sizeof(float));
    }
  }
}

}  // namespace iha::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cassert>

namespace iha::kernels {
HWY_EXPORT(XsaTokens);

void Xsa(const XsaShape& shape, float* y, const float* v, ParallelFor& parallel) {
  assert(shape.d <= kXsaMaxDim);
  const auto tokens = HWY_DYNAMIC_DISPATCH(XsaTokens);
  ForRowChunks(shape.tokens, shape.heads * shape.d, parallel,
               [&](size_t t0, size_t t1) { tokens(shape, y, v, t0, t1); });
}

}  // namespace iha::kernels
#endif
