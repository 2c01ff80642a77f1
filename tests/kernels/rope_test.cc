#include "kernels/rope/rope.h"

#include <cmath>

#include "kernels/support/thread_pool.h"
#include "tests/kernels/kernel_test_util.h"

namespace iha::kernels {
namespace {

TEST(RopeTable, RoundsOnceFromLongDouble) {
  const size_t half = 32, count = 200;
  for (const double theta : {10000.0, 500000.0}) {
    std::vector<double> frequency(half);
    RopeFrequencies(theta, 2 * half, frequency.data());
    EXPECT_EQ(frequency[0], 1.0);
    for (const uint32_t pos0 : {0u, 8100u, 131000u, (1u << 20) - 200}) {
      std::vector<float> cos(count * half), sin(count * half);
      FillRopeTable(frequency.data(), half, pos0, count, 1.0, cos.data(), sin.data());
      for (size_t row = 0; row < count; ++row) {
        for (size_t i = 0; i < half; ++i) {
          const long double x = static_cast<long double>(pos0 + row) * frequency[i];
          // Half an ulp of a value below 1 is at most 2^-25; the 80-bit product errs by 2^20 * 2^-64, double steps by
          // less than 2^-50.
          EXPECT_LE(std::fabs(cos[row * half + i] - std::cos(x)), 0x1p-25L + 0x1p-43L);
          EXPECT_LE(std::fabs(sin[row * half + i] - std::sin(x)), 0x1p-25L + 0x1p-43L);
        }
      }
    }
  }
}

TEST(RopeTable, StartChangesNoBit) {
  const size_t half = 20;
  std::vector<double> frequency(half);
  RopeFrequencies(10000.0, 2 * half, frequency.data());
  std::vector<float> cos(300 * half), sin(300 * half), c1(half), s1(half);
  FillRopeTable(frequency.data(), half, 1000, 300, 0.7, cos.data(), sin.data());
  for (uint32_t row = 0; row < 300; ++row) {
    FillRopeTable(frequency.data(), half, 1000 + row, 1, 0.7, c1.data(), s1.data());
    EXPECT_EQ(FirstDifference(c1.data(), &cos[row * half], half), -1);
    EXPECT_EQ(FirstDifference(s1.data(), &sin[row * half], half), -1);
  }
}

TEST(Rope, BitsFollowTheRuleAndTheRestIsLeftAlone) {
  ThreadPool one(1), three(3);
  for (const size_t rotary : {2, 8, 12, 16, 64, 80, 128}) {
    for (const RopePairing pairing : {RopePairing::kHalf, RopePairing::kInterleaved}) {
      const size_t half = rotary / 2, d = rotary + 5;
      const RopeShape shape{70, 3, 3 * d + 7, d, rotary, pairing};
      std::vector<double> frequency(half);
      RopeFrequencies(10000.0, rotary, frequency.data());
      std::vector<float> cos(500 * half), sin(500 * half);
      FillRopeTable(frequency.data(), half, 0, 500, 1.0, cos.data(), sin.data());
      std::vector<uint32_t> positions;
      for (uint32_t t = 0; t < 70; ++t) positions.push_back(t * 131 % 500);
      const std::vector<float> x = RandomFloats(shape.tokens * shape.token_stride, 1);
      std::vector<float> want = x;
      std::vector<double> exact(70 * 3 * rotary);
      RopeRef(shape, x.data(), positions.data(), cos.data(), sin.data(), exact.data());
      for (size_t t = 0; t < 70; ++t) {
        for (size_t h = 0; h < 3; ++h) {
          for (size_t i = 0; i < half; ++i) {
            const size_t at = t * shape.token_stride + h * d;
            const size_t iu = at + (pairing == RopePairing::kHalf ? i : 2 * i);
            const size_t iv = at + (pairing == RopePairing::kHalf ? i + half : 2 * i + 1);
            const float c = cos[positions[t] * half + i], s = sin[positions[t] * half + i];
            want[iu] = std::fma(x[iu], c, -(x[iv] * s));
            want[iv] = std::fma(x[iv], c, x[iu] * s);
            // One product and one sum, each rounded, of values whose squares sum to at most 2.
            const double* e = &exact[(t * 3 + h) * rotary];
            EXPECT_LE(std::fabs(want[iu] - e[iu - at]), 2 * 1.5 * 0x1p-24);
            EXPECT_LE(std::fabs(want[iv] - e[iv - at]), 2 * 1.5 * 0x1p-24);
          }
        }
      }
      ForEachTarget([&](const SimdTarget&) {
        for (ThreadPool* pool : {&one, &three}) {
          std::vector<float> y = x;
          Rope(shape, y.data(), positions.data(), cos.data(), sin.data(), *pool);
          ASSERT_EQ(FirstDifference(y, want), -1) << "rotary " << rotary << " pairing " << static_cast<int>(pairing);
        }
      });
    }
  }
}

}  // namespace
}  // namespace iha::kernels
