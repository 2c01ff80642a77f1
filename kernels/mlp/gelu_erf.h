// gelu_erf.h: x Phi(x), Phi the normal distribution function, by fixed operations (numerics.md, NUM-7).
//
// Q = Phi(-z), z = min(|x|, 16): exp(-z^2 / 2) P(s) / (z + 3), s = (z - 3) / (z + 3). z^2 = h + e exactly (one fma), so
// exp(-z^2 / 2) = E - E e / 2 with E = ExpNeg(-h / 2): the tail keeps its relative accuracy. gelu(x) = x (1 - Q) for
// x >= 0, else x Q. P: Chebyshev interpolation (relative) of degree 10 of Phi(-z) exp(z^2 / 2) (z + 3) for z in
// [0, 13.5], within 2^-24.6 with its coefficients rounded to fp32.
// Within 12 * 2^-24 of x Phi(x) relatively for all x >= -13 (measured over all exponents: 5.7 * 2^-24); below, where
// exp underflows, within 1e-38, and -0 from -13.2 on. NaN for NaN and for -infinity (-infinity times 0, as upstream),
// infinity for infinity.
#pragma once

#include <cmath>

#include "kernels/support/exact_math.h"

namespace iha::kernels {

namespace gelu_constants {
inline constexpr float kMaxZ = 16.0f, kCenter = 3.0f;
inline constexpr float kP[] = {0.729083717f,     -0.509332001f,   0.230017677f,   -0.0472627096f,
                               -0.0104623428f,   0.00696955109f,  0.00102423446f, -0.00103347865f,
                               -0.000244428869f, 0.000132403526f, 5.49408251e-05f};
inline constexpr int kDegree = 10;
}  // namespace gelu_constants

inline float GeluErf(float x) {
  using namespace gelu_constants;
  const float magnitude = std::fabs(x);
  const float z = kMaxZ - magnitude >= 0 ? magnitude : kMaxZ;  // a NaN comes back with the last product
  const float h = z * z, e = std::fma(z, z, -h);
  const float exp_h = ExpNeg(-0.5f * h), gauss = std::fma(exp_h, -0.5f * e, exp_h);
  const float divisor = z + kCenter, s = (z - kCenter) / divisor;
  float p = kP[kDegree];
  for (int i = kDegree - 1; i >= 0; --i) p = std::fma(p, s, kP[i]);
  const float q = gauss * p / divisor;
  return x * (x >= 0 ? 1.0f - q : q);
}

}  // namespace iha::kernels
