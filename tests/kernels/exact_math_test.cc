#include "kernels/support/exact_math.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/kernel_test_util.h"
#include "tests/support/worst_error.h"

namespace iha::kernels {
namespace {

// One random float out of every 16 from -2^-26 to -87, against double exp: 17 million values.
TEST(ExpNeg, WithinOnePointOneUlp) {
  iha::testing::WorstError worst;
  float worst_at = 0;
  std::mt19937 jitter(1);
  for (uint32_t bits = 0x80000000u; bits <= 0xC2AE0000u; bits += 16) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits + jitter() % 16));
    if (x < -87.0f) break;
    const float y = ExpNeg(x);
    if (x > -0x1p-26f) {  // exp(x) rounds to 1
      ASSERT_EQ(y, 1.0f) << x;
      bits += 16 * 255;  // half of all floats lie here
      continue;
    }
    // Double exp errs by less than 2^-52 relative: 2^-29 ulp of fp32.
    const double want = std::exp(static_cast<double>(x));
    const double ulp = std::ldexp(1.0, std::ilogb(want) - 23);
    const double error = std::fabs(y - want) / ulp;
    if (worst.Add(error)) worst_at = x;
  }
  RecordProperty("worst_ulp", std::to_string(worst.value()));
  EXPECT_LT(worst.value(), 1.1) << "at " << worst_at;
}

TEST(WorstError, NaNStays) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::vector<double>& errors : {std::vector<double>{nan, 1, 2}, {1, nan, 2}, {1, 2, nan}}) {
    iha::testing::WorstError worst;
    for (const double error : errors) worst.Add(error);
    EXPECT_TRUE(std::isnan(worst.value()));
  }
  iha::testing::WorstError worst;
  EXPECT_FALSE(worst.Add(0));
  EXPECT_TRUE(worst.Add(2));
  EXPECT_FALSE(worst.Add(1));
  EXPECT_EQ(worst.value(), 2);
}

TEST(SimdTargets, ScalarPathAndWhatTheMachineHas) {
  const std::vector<SimdTarget> targets = SimdTargets();
  ASSERT_FALSE(targets.empty());
  EXPECT_EQ(CurrentSimdTarget().id, targets.front().id);
#if defined(__x86_64__)
  EXPECT_FALSE(targets.back().vectorized);  // the path of machines without fma is always there to test
  bool avx2 = false;
  for (const SimdTarget& target : targets) avx2 |= target.name == "AVX2" && target.vectorized;
  EXPECT_EQ(avx2, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
#endif
}

TEST(ExpNeg, Edges) {
  EXPECT_EQ(ExpNeg(0.0f), 1.0f);
  EXPECT_EQ(ExpNeg(-0.0f), 1.0f);
  EXPECT_EQ(std::bit_cast<uint32_t>(ExpNeg(std::nextafter(-87.0f, -88.0f))), 0u);
  EXPECT_EQ(std::bit_cast<uint32_t>(ExpNeg(-std::numeric_limits<float>::infinity())), 0u);
  EXPECT_GT(ExpNeg(-87.0f), std::numeric_limits<float>::min());
  EXPECT_TRUE(std::isnan(ExpNeg(std::numeric_limits<float>::quiet_NaN())));
}

TEST(ExpNeg, FollowsItsSteps) {
  // A digest of 5569 values pins every constant and step: a change of any of them changes what models answer and needs
  // a new numerics id.
  uint64_t hash = 1469598103934665603ull;
  for (int i = 0; i <= 87 * 64; ++i) {
    hash = (hash ^ std::bit_cast<uint32_t>(ExpNeg(-static_cast<float>(i) / 64))) * 1099511628211ull;
  }
  EXPECT_EQ(hash, 13373452514258304813ull);
}

TEST(ExactDouble, ExpAgainstLongDouble) {
  std::mt19937_64 bits(3);
  iha::testing::WorstError worst;
  for (int i = 0; i < 300000; ++i) {
    const double x = -700.0 + 1400.0 * (static_cast<double>(bits() >> 11) * 0x1p-53);
    const long double want = std::exp(static_cast<long double>(x));
    worst.Add(static_cast<double>(std::fabs((ExactExp(x) - want) / want)));
  }
  EXPECT_LT(worst.value(), 0x1p-51);
  EXPECT_EQ(ExactExp(0.0), 1.0);
  EXPECT_EQ(ExactExp(-1e9), 0.0);
  EXPECT_EQ(ExactExp(1e9), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(ExactExp(std::nan(""))));
}

TEST(ExactDouble, LogAgainstLongDouble) {
  std::mt19937_64 bits(4);
  iha::testing::WorstError worst;
  const auto check = [&](double x) {
    const long double want = std::log(static_cast<long double>(x));
    if (want == 0) {
      EXPECT_EQ(ExactLog(x), 0.0);
      return;
    }
    worst.Add(static_cast<double>(std::fabs((ExactLog(x) - want) / want)));
  };
  for (int i = 0; i < 300000; ++i) {
    check(std::bit_cast<double>((bits() >> 12) | (uint64_t{1 + bits() % 2045} << 52)));  // any normal
    check(1.0 + (static_cast<double>(bits() >> 11) * 0x1p-53 - 0.5));                    // near 1
    check(1.0 + 49152.0 * (static_cast<double>(bits() >> 11) * 0x1p-53));                // sums of a softmax
  }
  check(1.0);
  EXPECT_LT(worst.value(), 0x1p-51);
  EXPECT_EQ(ExactLog(0.0), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(ExactLog(-1.0)));
}

TEST(ExactDouble, SinCosAgainstLongDouble) {
  std::mt19937_64 bits(5);
  iha::testing::WorstError worst;
  const auto check = [&](double position, double frequency) {
    // Positions have at most 21 bits and frequencies 53: the product is rounded to 64 bits, an error of at most
    // 2^-44 at 2^20; frequencies here have 43 bits, so that the product is exact in 80-bit arithmetic.
    const long double x = static_cast<long double>(position) * frequency;
    const SinCosValue got = ExactSinCos(position, frequency);
    worst.Add(static_cast<double>(std::fabs(got.sin - std::sin(x))));
    worst.Add(static_cast<double>(std::fabs(got.cos - std::cos(x))));
  };
  for (int i = 0; i < 500000; ++i) {
    check(static_cast<double>(bits() % ((1u << 20) + 1)), static_cast<double>(bits() >> 21) * 0x1p-43);
  }
  // Positions next to multiples of pi/2, where the reduction cancels most.
  for (const double p : {11.0, 22.0, 33.0, 355.0, 710.0, 103993.0, 104348.0, 208341.0, 312689.0, 833719.0})
    check(p, 1.0);
  check(0.0, 1.0);
  EXPECT_LT(worst.value(), 0x1p-51);
  EXPECT_EQ(ExactSinCos(0.0, 0.5).cos, 1.0);
  EXPECT_EQ(ExactSinCos(0.0, 0.5).sin, 0.0);
}

TEST(ExactDouble, PowGivesRopeFrequencies) {
  for (const double theta : {10000.0, 100000.0, 500000.0, 1000000.0}) {
    for (int i = 0; i < 64; ++i) {
      const long double want = std::pow(static_cast<long double>(theta), -2.0L * i / 128.0L);
      const double got = ExactPow(theta, -2.0 * i / 128.0);
      // The product exponent * log is below 14 and rounded twice (log, product): 14 * 2 * 2^-52, plus exp's 2^-51.
      EXPECT_LT(std::fabs(static_cast<double>((got - want) / want)), 30 * 0x1p-52) << theta << " " << i;
    }
  }
  EXPECT_EQ(ExactPow(10000.0, 0.0), 1.0);
}

TEST(Fold16, Order) {
  // Powers that only survive in the stated order: (a + big) - big loses a unless lanes i and i + 8 meet first.
  float lanes[16] = {};
  lanes[0] = 0x1p30f;
  lanes[8] = -0x1p30f;
  lanes[1] = 1.0f;
  EXPECT_EQ(Fold16(lanes), 1.0f);
  float other[16] = {};
  other[0] = 0x1p30f;
  other[1] = -0x1p30f;
  other[9] = 1.0f;  // meets lane 1 first and is lost there
  EXPECT_EQ(Fold16(other), 0.0f);
}

}  // namespace
}  // namespace iha::kernels
