// kernel_test_util.h: seeded inputs, bit comparison, and "for every SIMD target".
#pragma once

#include <gtest/gtest.h>

#include <bit>
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
