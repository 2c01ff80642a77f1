// gpu_test_util.h: inputs as the device holds them, schedules, and comparison of bf16 results with a double reference.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "kernels/support/small_float.h"
#include "tests/kernels/kernel_test_util.h"
#ifdef IHA_GPU_CUDA
#include "tests/kernels/gpu/cuda_test_device.h"
#else
#include "kernels/simt/device.h"
#include "kernels/simt/ptx.h"
namespace iha::kernels::simt {
using Count = uint64_t;  // a field of Counters
}
#endif

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

// The i-th of these schedules, for tests over many shapes that run each in one.
inline simt::Options ScheduleOf(size_t i) {
  return {.seed = i % 3 + 1, .copies = i / 3 % 2 == 0 ? simt::CopyMode::kEager : simt::CopyMode::kLazy};
}

// Rows of levels (row[f] < levels[f]) in which every pair of levels of every two factors occurs: each row starts with a
// pair that is still missing and takes, of seeded random ways to fill the rest, the one with the most missing pairs; by
// the root of what it costs, so that what is expensive by itself is not expensive in everything else, too.
using GridCost = std::function<double(const std::vector<size_t>&)>;
inline std::vector<std::vector<size_t>> PairwiseCover(const std::vector<size_t>& levels, const GridCost& cost = {},
                                                      uint32_t seed = 1) {
  using Pair = std::array<size_t, 4>;  // factor, level, later factor, level
  std::set<Pair> missing;
  for (size_t f = 0; f < levels.size(); ++f) {
    for (size_t g = f + 1; g < levels.size(); ++g) {
      for (size_t a = 0; a < levels[f]; ++a) {
        for (size_t b = 0; b < levels[g]; ++b) missing.insert({f, a, g, b});
      }
    }
  }
  const auto pairs_of = [](const std::vector<size_t>& row) {
    std::vector<Pair> pairs;
    for (size_t f = 0; f < row.size(); ++f) {
      for (size_t g = f + 1; g < row.size(); ++g) pairs.push_back({f, row[f], g, row[g]});
    }
    return pairs;
  };
  std::mt19937 bits(seed);
  std::vector<std::vector<size_t>> rows;
  while (!missing.empty()) {
    std::vector<size_t> best;
    double most = 0;
    for (int attempt = 0; attempt < 50; ++attempt) {
      std::vector<size_t> row(levels.size());
      for (size_t f = 0; f < row.size(); ++f) row[f] = bits() % levels[f];
      const Pair& first = *missing.begin();
      row[first[0]] = first[1];
      row[first[2]] = first[3];
      const std::vector<Pair> pairs = pairs_of(row);
      const auto covered = static_cast<double>(
          std::count_if(pairs.begin(), pairs.end(), [&](const Pair& p) { return missing.count(p) != 0; }));
      const double gain = covered / (cost ? std::sqrt(cost(row)) : 1.0);
      if (gain > most) {
        most = gain;
        best = row;
      }
    }
    for (const Pair& p : pairs_of(best)) missing.erase(p);
    rows.push_back(best);
  }
  return rows;
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

// bf16 that are NaN where `inside` holds, and elsewhere the bits that they were.
template <class Inside>
void ExpectNanOnlyIn(const std::vector<uint16_t>& got, const std::vector<uint16_t>& were, const Inside& inside) {
  ASSERT_EQ(got.size(), were.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (inside(i)) {
      EXPECT_TRUE(std::isnan(WidenBF16(got[i]))) << "at " << i;
    } else {
      EXPECT_EQ(got[i], were[i]) << "at " << i;
    }
  }
}

}  // namespace iha::kernels
