#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rope/rope_cpu.cc"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include "kernels/rope/rope.h"
#include "kernels/rope/rotate-inl.h"
#include "kernels/support/row_chunks.h"

HWY_BEFORE_NAMESPACE();
namespace iha::kernels::HWY_NAMESPACE {

void RopeTokens(const RopeShape& shape, float* x, const uint32_t* positions, const float* cos, const float* sin,
                size_t t0, size_t t1) {
  const size_t half = shape.rotary_dim / 2;
  for (size_t t = t0; t < t1; ++t) {
    const size_t row = positions[t] * half;
    for (size_t h = 0; h < shape.heads; ++h) {
      float* head = x + t * shape.token_stride + h * shape.head_stride;
      RotateRow(shape.pairing, head, half, cos + row, sin + row);
    }
  }
}

}  // namespace iha::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace iha::kernels {
HWY_EXPORT(RopeTokens);

void Rope(const RopeShape& shape, float* x, const uint32_t* positions, const float* cos, const float* sin,
          ParallelFor& parallel) {
  const auto tokens = HWY_DYNAMIC_DISPATCH(RopeTokens);
  ForRowChunks(shape.tokens, shape.heads * shape.rotary_dim, parallel,
               [&](size_t t0, size_t t1) { tokens(shape, x, positions, cos, sin, t0, t1); });
}

}  // namespace iha::kernels
#endif
