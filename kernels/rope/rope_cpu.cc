#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rope/rope_cpu.cc"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include "kernels/rope/rope.h"
#include "kernels/support/lanes-inl.h"
#include "kernels/support/row_chunks.h"

HWY_BEFORE_NAMESPACE();
namespace iha::kernels::HWY_NAMESPACE {

// u and v of 16 pairs in place.
HWY_INLINE void Rotate(X16& u, X16& v, const X16& c, const X16& s) {
  const X16 rotated = Fma(u, c, Neg(Mul(v, s)));
  v = Fma(v, c, Mul(u, s));
  u = rotated;
}

HWY_INLINE void RotateHalf(float* x, size_t half, const float* cos, const float* sin) {
  for (size_t i = 0; i < half; i += 16) {
    if (i + 16 <= half) {
      X16 u = X16::Load(x + i), v = X16::Load(x + half + i);
      Rotate(u, v, X16::Load(cos + i), X16::Load(sin + i));
      u.Store(x + i);
      v.Store(x + half + i);
    } else {
      const size_t n = half - i;
      X16 u = X16::LoadN(x + i, n), v = X16::LoadN(x + half + i, n);
      Rotate(u, v, X16::LoadN(cos + i, n), X16::LoadN(sin + i, n));
      u.StoreN(x + i, n);
      v.StoreN(x + half + i, n);
    }
  }
}

HWY_INLINE void RotateInterleaved(float* x, size_t half, const float* cos, const float* sin) {
  alignas(64) float a[16] = {}, b[16] = {};
  for (size_t i = 0; i < half; i += 16) {
    const size_t n = half - i < 16 ? half - i : 16;
    for (size_t j = 0; j < n; ++j) {
      a[j] = x[2 * (i + j)];
      b[j] = x[2 * (i + j) + 1];
    }
    X16 u = X16::Load(a), v = X16::Load(b);
    Rotate(u, v, X16::LoadN(cos + i, n), X16::LoadN(sin + i, n));
    u.Store(a);
    v.Store(b);
    for (size_t j = 0; j < n; ++j) {
      x[2 * (i + j)] = a[j];
      x[2 * (i + j) + 1] = b[j];
    }
  }
}

void RopeTokens(const RopeShape& shape, float* x, const uint32_t* positions, const float* cos, const float* sin,
                size_t t0, size_t t1) {
  const size_t half = shape.rotary_dim / 2;
  for (size_t t = t0; t < t1; ++t) {
    const size_t row = positions[t] * half;
    for (size_t h = 0; h < shape.heads; ++h) {
      float* head = x + t * shape.token_stride + h * shape.head_stride;
      if (shape.pairing == RopePairing::kHalf) {
        RotateHalf(head, half, cos + row, sin + row);
      } else {
        RotateInterleaved(head, half, cos + row, sin + row);
      }
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
