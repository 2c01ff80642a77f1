// exact_math.h: the scalar functions whose bits are part of the numerics (docs/contracts/numerics.md, NUM-4 and NUM-5).
//
// No libm result enters a model: libm may change its last bit between versions. Everything here is a fixed sequence of
// IEEE operations (+, -, *, /, sqrt, fma, all correctly rounded), so it gives the same bits on every machine and in
// every vector width. Needs the default floating-point environment: round to nearest even, no flush to zero.
// Pure functions, any thread, no allocation.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace iha::kernels {

// Constants of ExpNeg, shared with its vector form in lanes-inl.h.
namespace exp_constants {
inline constexpr float kLog2E = 1.44269504088896341f;
inline constexpr float kLn2Hi = 0.693145751953125f;          // 15 significant bits: n * kLn2Hi is exact for |n| < 2^9
inline constexpr float kLn2Lo = 1.42860682030941723212e-6f;  // ln 2 - kLn2Hi
inline constexpr float kMin = -87.0f;                        // below: exactly +0, so no result is subnormal
inline constexpr float kC7 = 1.0f / 5040, kC6 = 1.0f / 720, kC5 = 1.0f / 120, kC4 = 1.0f / 24, kC3 = 1.0f / 6;
inline constexpr float kC2 = 0.5f;
}  // namespace exp_constants

// exp(x) for x <= 0, within 1.1 ulp; exp(0) = 1; +0 below -87; NaN for NaN. x > 0 is outside the contract.
inline float ExpNeg(float x) {
  using namespace exp_constants;
  if (!(x >= kMin)) return x != x ? x : 0.0f;
  const float n = std::nearbyintf(x * kLog2E);
  float r = std::fma(n, -kLn2Hi, x);
  r = std::fma(n, -kLn2Lo, r);
  float p = std::fma(kC7, r, kC6);
  p = std::fma(p, r, kC5);
  p = std::fma(p, r, kC4);
  p = std::fma(p, r, kC3);
  p = std::fma(p, r, kC2);
  // 1 + (r + r^2 p): the last two steps keep the rounding error near half an ulp.
  p = 1.0f + std::fma(r * r, p, r);
  const uint32_t shift = static_cast<uint32_t>(static_cast<int32_t>(n)) << 23;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(p) + shift);
}

// The one way sums over 16 lanes end: lane i + lane i + half, for half = 8, 4, 2, 1. Overwrites its argument.
template <class T>
inline T Fold16(T* lanes) {
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

// 1 / sqrt(x) by a correctly rounded root and a true division.
inline float InvSqrt(float x) { return 1.0f / std::sqrt(x); }

// Double functions for tables and scores. Relative error below 2^-51 (Exp, Log) or absolute error below 2^-51 (SinCos)
// over the stated domains; measured against 80-bit libm in tests/kernels/exact_math_test.cc.
double ExactExp(double x);  // any x; +0 below -708, infinity above 709
double ExactLog(double x);  // x > 0 and normal; -infinity for 0, NaN for negative or NaN, infinity for infinity
double ExactPow(double base, double exponent);  // base > 0; relative error grows as |exponent * log(base)| * 2^-52

struct SinCosValue {
  double sin = 0;
  double cos = 0;
};
// Of the exact product position * frequency, |product| < 2^21 (the product is not rounded first).
SinCosValue ExactSinCos(double position, double frequency);

}  // namespace iha::kernels
