// gpu_test_util.h: inputs as the device holds them, schedules, and comparison of bf16 results with a double reference.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "kernels/simt/device.h"
#include "kernels/support/small_float.h"
#include "tests/kernels/kernel_test_util.h"

namespace iha::kernels {

// Values that bf16 holds exactly, as bits and as floats: references see what the kernel sees.
struct Rounded {
  std::vector<uint16_t> bits;
  std::vector<float> values;
};
inline Rounded RoundAll(const std::vector<float>& x) {
  Rounded r;
  for (const float v : x) {
    r.bits.push_back(RoundToBF16(v));
    r.values.push_back(WidenBF16(r.bits.back()));
  }
  return r;
}
inline Rounded RandomBF16(size_t n, uint32_t seed, float scale = 1.0f) {
  return RoundAll(RandomFloats(n, seed, scale));
}
inline std::vector<float> WidenAll(const std::vector<uint16_t>& bits) {
  std::vector<float> values;
  for (const uint16_t b : bits) values.push_back(WidenBF16(b));
  return values;
}

// Both ways of cp.async and three orders of warps.
inline void ForEachSchedule(const std::function<void(simt::Device&)>& f) {
  for (const simt::CopyMode copies : {simt::CopyMode::kEager, simt::CopyMode::kLazy}) {
    for (const uint64_t seed : {1, 2, 3}) {
      SCOPED_TRACE(std::string(copies == simt::CopyMode::kEager ? "eager" : "lazy") + ", seed " + std::to_string(seed));
      simt::Device device({.seed = seed, .copies = copies});
      f(device);
    }
  }
}

// bf16 has 8 significant bits: rounding moves a value by at most 2^-8 of it, and by 2^-134 below 2^-126.
inline constexpr double kBF16 = 0x1p-8;

// NaN and infinities in the same places, else |got - want| <= relative |want| + absolute (of that element).
inline void ExpectClose(const std::vector<float>& got, const std::vector<double>& want, double relative,
                        const std::function<double(size_t)>& absolute) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i]) || std::isnan(got[i])) {
      ASSERT_EQ(std::isnan(got[i]), std::isnan(want[i])) << "at " << i;
    } else if (std::isinf(want[i]) || std::isinf(got[i])) {
      ASSERT_EQ(static_cast<double>(got[i]), want[i]) << "at " << i;
    } else {
      ASSERT_LE(std::fabs(got[i] - want[i]), relative * std::fabs(want[i]) + absolute(i))
          << "at " << i << ": " << got[i] << ", expected " << want[i];
    }
  }
}

}  // namespace iha::kernels
