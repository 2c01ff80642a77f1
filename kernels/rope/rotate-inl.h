// rotate-inl.h: one head rotated in place by one row of a RoPE table (NUM-5), for the kernels that rotate.
//
// Included once per Highway target.
#if defined(IHA_KERNELS_ROPE_ROTATE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef IHA_KERNELS_ROPE_ROTATE_INL_H_
#undef IHA_KERNELS_ROPE_ROTATE_INL_H_
#else
#define IHA_KERNELS_ROPE_ROTATE_INL_H_
#endif

#include <cstddef>

#include "kernels/rope/rope.h"
#include "kernels/support/lanes-inl.h"

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

// x: [2 * half]; cos, sin: [half].
HWY_INLINE void RotateRow(RopePairing pairing, float* x, size_t half, const float* cos, const float* sin) {
  if (pairing == RopePairing::kHalf) {
    RotateHalf(x, half, cos, sin);
  } else {
    RotateInterleaved(x, half, cos, sin);
  }
}

}  // namespace iha::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // toggle
