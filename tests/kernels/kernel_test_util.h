// kernel_test_util.h: seeded inputs, bit comparison, and "for every SIMD target".
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "kernels/support/exact_math.h"
#include "kernels/support/simd_target.h"

namespace iha::kernels {

// Uniform in [-scale, scale).
inline std::vector<float> RandomFloats(size_t n, uint32_t seed, float scale = 1.0f) {
  std::mt19937 bits(seed);
  std::vector<float> values(n);
  for (float& x : values) x = (static_cast<float>(bits()) * 0x1p-31f - 1.0f) * scale;
  return values;
}

// Rules that several kernels share, written plainly. The sigmoid of NUM-7:
inline float SigmoidRule(float z) {
  const float e = ExpNeg(-std::fabs(z));
  return (z >= 0 ? 1.0f : e) / (1.0f + e);
}
// One row of NUM-11, of d floats: y without its part along v.
inline std::vector<float> XsaRule(const float* y, const float* v, size_t d) {
  std::vector<float> z(y, y + d), u(d);
  float lanes[16] = {};
  for (size_t i = 0; i < d; ++i) lanes[i % 16] = std::fma(v[i], v[i], lanes[i % 16]);
  const float norm = std::sqrt(Fold16(lanes));
  for (size_t i = 0; i < d; ++i) u[i] = v[i] / (norm < 1e-12f ? 1e-12f : norm);
  std::fill(lanes, lanes + 16, 0.0f);
  for (size_t i = 0; i < d; ++i) lanes[i % 16] = std::fma(y[i], u[i], lanes[i % 16]);
  const float dot = Fold16(lanes);
  for (size_t i = 0; i < d; ++i) z[i] = std::fma(-dot, u[i], y[i]);
  return z;
}

// Plain RoPE frequencies, as checkpoints give them (NUM-5).
inline void RopeFrequencies(double theta, size_t rotary_dim, double* frequency) {
  for (size_t i = 0; i < rotary_dim / 2; ++i) {
    frequency[i] = 1.0 / ExactPow(theta, static_cast<double>(2 * i) / static_cast<double>(rotary_dim));
  }
}

// Index of the first value whose bits differ, or -1; any NaN equals any NaN.
inline int64_t FirstDifference(const float* a, const float* b, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i]) && !(a[i] != a[i] && b[i] != b[i])) {
      return static_cast<int64_t>(i);
    }
  }
  return -1;
}
inline int64_t FirstDifference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return 0;
  return FirstDifference(a.data(), b.data(), a.size());
}

// Runs f under every target compiled in and supported here, then returns to the automatic choice.
inline void ForEachTarget(const std::function<void(const SimdTarget&)>& f) {
  for (const SimdTarget& target : SimdTargets()) {
    ForceSimdTargetForTest(target.id);
    EXPECT_EQ(CurrentSimdTarget().id, target.id);
    SCOPED_TRACE(target.name);
    f(target);
  }
  ForceSimdTargetForTest(0);
}

}  // namespace iha::kernels
