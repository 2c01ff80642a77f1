#include "kernels/logits/logits.h"

#include <cmath>
#include <limits>

#include "kernels/support/exact_math.h"
#include "tests/kernels/kernel_test_util.h"

namespace iha::kernels {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

TEST(Argmax, LowestIndexOfTheLargest) {
  for (const size_t n : {1, 2, 15, 16, 17, 100, 49152}) {
    for (const size_t at : {size_t{0}, n / 2, n - 1}) {
      std::vector<float> x = RandomFloats(n, 1), ties = x;
      x[at] = 5.0f;
      for (size_t i = at; i < n; ++i) ties[i] = 5.0f;  // above
      ForEachTarget([&](const SimdTarget&) {
        EXPECT_EQ(Argmax(x), static_cast<int32_t>(at)) << n;
        EXPECT_EQ(Argmax(ties), static_cast<int32_t>(at)) << n;
      });
    }
  }
  EXPECT_EQ(Argmax(std::vector<float>{-0.0f, 0.0f}), 0);
  EXPECT_EQ(Argmax(std::vector<float>{-kInf, -kInf}), 0);
  EXPECT_EQ(Argmax(std::vector<float>{1.0f, kInf, kInf}), 1);
}

TEST(Argmax, NaNAnywhereIsReported) {
  EXPECT_EQ(Argmax({}), -1);
  for (size_t at = 0; at < 150; ++at) {
    std::vector<float> x = RandomFloats(150, 1);
    x[at] = at % 2 == 0 ? kNaN : -kNaN;
    ForEachTarget([&](const SimdTarget&) { EXPECT_EQ(Argmax(x), -1) << at; });
  }
}

// The lanes' exponential is the scalar one: every 997th of the numbers from -0 to -88, and the neighbours of the halves
// between which the exponent changes.
TEST(SoftmaxWeights, ExponentialsHaveTheScalarBits) {
  std::vector<float> x = {0.0f, -kInf, -1e30f};
  for (uint32_t bits = 0x80000000u; bits < std::bit_cast<uint32_t>(-88.0f); bits += 997) {
    x.push_back(std::bit_cast<float>(bits));
  }
  for (int n = 0; n < 127; ++n) {
    const auto half = std::bit_cast<uint32_t>(static_cast<float>(-(n + 0.5) * 0.6931471805599453));
    for (uint32_t near = half - 40; near < half + 40; ++near) x.push_back(std::bit_cast<float>(near));
  }
  std::vector<float> want, weights(x.size());
  for (const float v : x) want.push_back(ExpNeg(v));
  ForEachTarget([&](const SimdTarget&) {
    SoftmaxWeights(x, 1.0f, weights.data());
    EXPECT_EQ(FirstDifference(weights, want), -1);
  });
}

TEST(LogSumExp, BitsFollowTheRule) {
  for (const size_t n : {1, 3, 16, 31, 1000, 49152}) {
    const std::vector<float> x = RandomFloats(n, 7, 15);
    float largest = -kInf;
    for (const float v : x) largest = std::max(largest, v);
    double lanes[16] = {};
    for (size_t i = 0; i < n; ++i) lanes[i % 16] += static_cast<double>(ExpNeg(x[i] - largest));
    const double want = static_cast<double>(largest) + ExactLog(Fold16(lanes));
    ForEachTarget([&](const SimdTarget&) {
      EXPECT_EQ(std::bit_cast<uint64_t>(LogSumExp(x)), std::bit_cast<uint64_t>(want)) << n;
    });
    // A term errs by 1.1 ulp of fp32 and by the rounding of x - max (|x - max| <= 30: 30 u); the sum in double by less
    // than 2^-37. The error of log is the relative one of the sum.
    EXPECT_NEAR(want, LogSumExpRef(x), (2.2 + 30) * 0x1p-24 + 0x1p-37) << n;
    EXPECT_EQ(LogProb(x, 0, want), static_cast<double>(x[0]) - want);
  }
}

TEST(LogSumExp, EdgeRows) {
  EXPECT_EQ(LogSumExp({}), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(LogSumExp(std::vector<float>{1.0f, kNaN})));
  EXPECT_TRUE(std::isnan(LogSumExp(std::vector<float>{1.0f, kInf})));
  EXPECT_TRUE(std::isnan(LogSumExp(std::vector<float>{-kInf, -kInf})));
  EXPECT_EQ(LogSumExp(std::vector<float>{2.0f, -kInf}), 2.0);
}

TEST(SoftmaxWeights, TemperatureAndSum) {
  const std::vector<float> x = RandomFloats(1003, 8, 10);
  for (const float temperature : {1.0f, 0.7f, 2.0f}) {
    float largest = -kInf;
    for (const float v : x) largest = std::max(largest, v);
    std::vector<float> want(x.size());
    double lanes[16] = {};
    for (size_t i = 0; i < x.size(); ++i) {
      want[i] = ExpNeg((x[i] - largest) / temperature);
      lanes[i % 16] += static_cast<double>(want[i]);
    }
    const double sum = Fold16(lanes);
    ForEachTarget([&](const SimdTarget&) {
      std::vector<float> weights = x;
      EXPECT_EQ(SoftmaxWeights(weights, temperature, weights.data()), sum);
      EXPECT_EQ(FirstDifference(weights, want), -1);
    });
  }
  std::vector<float> bad = {1.0f, kNaN}, weights(2);
  EXPECT_TRUE(std::isnan(SoftmaxWeights(bad, 1.0f, weights.data())));
  EXPECT_TRUE(std::isnan(weights[0]));
}

}  // namespace
}  // namespace iha::kernels
