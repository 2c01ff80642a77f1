// row_ops.cuh: operations on a row that kLanes lanes next to each other hold, 8 columns each, in fp32.
#pragma once

#include "kernels/simt/device_math.h"

namespace iha::kernels {

// z without its part along v: z - (z . u) u, u = v / max(||v||, 1e-12).
template <uint32_t kLanes>
IHA_DEVICE void TakeOutValue(const float (&v)[8], float (&z)[8]) {
  float square = 0.0f, dot = 0.0f;
  for (int i = 0; i < 8; ++i) square = fmaf(v[i], v[i], square);
  const float norm = sqrtf(SumLanes(square, kLanes));
  const float scale = 1.0f / (norm < 1e-12f ? 1e-12f : norm);
  for (int i = 0; i < 8; ++i) dot = fmaf(z[i], v[i] * scale, dot);
  dot = SumLanes(dot, kLanes);
  for (int i = 0; i < 8; ++i) z[i] = fmaf(-dot, v[i] * scale, z[i]);
}

// 1 / sqrt(mean of squares + eps), the mean over `count` values.
template <uint32_t kLanes>
IHA_DEVICE float RootMeanSquare(const float (&x)[8], uint32_t count, float eps) {
  float square = 0.0f;
  for (int i = 0; i < 8; ++i) square = fmaf(x[i], x[i], square);
  return ptx::Rsqrt(SumLanes(square, kLanes) / static_cast<float>(count) + eps);
}

// The exponent is never positive, so nothing overflows to 0 * inf.
IHA_DEVICE float Sigmoid(float z) {
  const float e = ptx::Exp2(-fabsf(z) * 1.44269504088896341f);
  return (z >= 0.0f ? 1.0f : e) / (1.0f + e);
}

}  // namespace iha::kernels
