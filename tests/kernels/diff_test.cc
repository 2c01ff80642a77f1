#include "kernels/diff/diff.h"

#include <cmath>
#include <limits>

#include "kernels/support/exact_math.h"
#include "kernels/support/thread_pool.h"
#include "tests/kernels/kernel_test_util.h"

namespace iha::kernels {
namespace {

constexpr double kU = 0x1p-24;

TEST(Diff, GatedFollowsTheRuleAndTheEquation) {
  ThreadPool one(1), three(3);
  for (const size_t d : {1, 8, 16, 20, 64, 130}) {
    const DiffShape shape{.tokens = 70, .pairs = 3, .d = d};
    const std::vector<float> a = RandomFloats(70 * 3 * 2 * d, 1), logits = RandomFloats(70 * 3, 2, 10);
    std::vector<float> want(70 * 3 * d);
    for (size_t i = 0; i < want.size(); ++i) {
      const float* pair = &a[i / d * 2 * d];
      want[i] = std::fma(-SigmoidRule(logits[i / d]), pair[d + i % d], pair[i % d]);
    }
    ForEachTarget([&](const SimdTarget&) {
      for (ThreadPool* pool : {&one, &three}) {
        std::vector<float> got(want.size(), std::numeric_limits<float>::quiet_NaN());
        DiffGated(shape, a.data(), logits.data(), got.data(), *pool);
        ASSERT_EQ(FirstDifference(got, want), -1) << "d " << d;
      }
    });
    std::vector<double> exact(want.size());
    DiffGatedRef(shape, a.data(), logits.data(), exact.data());
    // The sigmoid errs by 6 u of at most 1, |a| <= 1, the fma rounds at most 2.
    for (size_t i = 0; i < want.size(); ++i) ASSERT_LE(std::fabs(want[i] - exact[i]), 8 * kU) << i;
  }
}

TEST(Diff, NormedFollowsTheRuleAndTheEquation) {
  ThreadPool one(1), three(3);
  for (const size_t d : {16, 20, 64, 130}) {
    const DiffShape shape{.tokens = 70, .pairs = 3, .d = d};
    const std::vector<float> a = RandomFloats(70 * 3 * 2 * d, 1), weight = RandomFloats(d, 2, 2);
    const DiffNorm norm{.lambda = 0.37f, .weight = weight.data(), .eps = 1e-5f, .scale = 0.8f};
    std::vector<float> want;
    for (size_t r = 0; r < 70 * 3; ++r) {
      const float* pair = &a[r * 2 * d];
      std::vector<float> x(d);
      float lanes[16] = {};
      for (size_t i = 0; i < d; ++i) x[i] = std::fma(-norm.lambda, pair[d + i], pair[i]);
      for (size_t i = 0; i < d; ++i) lanes[i % 16] = std::fma(x[i], x[i], lanes[i % 16]);
      const float rms = InvSqrt(Fold16(lanes) / static_cast<float>(d) + norm.eps);
      for (size_t i = 0; i < d; ++i) want.push_back((x[i] * rms) * weight[i] * norm.scale);
    }
    ForEachTarget([&](const SimdTarget&) {
      for (ThreadPool* pool : {&one, &three}) {
        std::vector<float> got(want.size(), std::numeric_limits<float>::quiet_NaN());
        DiffNormed(shape, norm, a.data(), got.data(), *pool);
        ASSERT_EQ(FirstDifference(got, want), -1) << "d " << d;
      }
    });
    std::vector<double> exact(want.size());
    DiffNormedRef(shape, norm, a.data(), exact.data());
    // x errs by u (1 + lambda), which reaches the root mean square too (it is above 1/4 for these inputs); the sum of
    // squares by (d / 16 + 5) u relatively, halved by the root; mean, eps, root, division and three products: 7 u.
    // |x| / rms <= sqrt d, |weight| <= 2.
    const double dd = static_cast<double>(d);
    for (size_t i = 0; i < want.size(); ++i) {
      const double bound = 2 * 0.8 * 1.37 * 4 * kU + std::fabs(exact[i]) * (1.37 * 4 + (dd / 16 + 5) / 2 + 7) * kU;
      ASSERT_LE(std::fabs(want[i] - exact[i]), bound) << i;
    }
  }
}

TEST(Diff, LogitZeroTakesHalfOfTheSecondHead) {
  SerialFor serial;
  const std::vector<float> a = RandomFloats(2 * 2 * 8, 1), zero(2, 0.0f);
  std::vector<float> out(2 * 8);
  DiffGated({.tokens = 2, .pairs = 1, .d = 8}, a.data(), zero.data(), out.data(), serial);
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], a[i / 8 * 16 + i % 8] - a[i / 8 * 16 + 8 + i % 8] / 2);
}

TEST(Diff, NaNStaysInItsPair) {
  SerialFor serial;
  std::vector<float> a = RandomFloats(3 * 2 * 20, 1);
  a[1 * 40 + 20 + 3] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> logits(3, 1.0f), weight(20, 1.0f);
  std::vector<float> gated(60), normed(60);
  DiffGated({.tokens = 3, .pairs = 1, .d = 20}, a.data(), logits.data(), gated.data(), serial);
  DiffNormed({.tokens = 3, .pairs = 1, .d = 20}, {.lambda = 0.5f, .weight = weight.data(), .eps = 1e-6f, .scale = 1},
             a.data(), normed.data(), serial);
  for (size_t i = 0; i < 60; ++i) {
    EXPECT_EQ(std::isnan(gated[i]), i == 23) << i;
    EXPECT_EQ(std::isnan(normed[i]), i / 20 == 1) << i;  // its norm is of all features
  }
}

// Against long double; each exp is within 2^-51 (exact_math.h), the chains of 64 products within 64 * 2^-53 of 64, and
// the last step rounds to fp32.
TEST(Diff, LambdaIsTheFormulaRoundedOnce) {
  const std::vector<float> q1 = RandomFloats(64, 1, 0.3f), k1 = RandomFloats(64, 2, 0.3f);
  const std::vector<float> q2 = RandomFloats(64, 3, 0.3f), k2 = RandomFloats(64, 4, 0.3f);
  const auto dot = [](const std::vector<float>& x, const std::vector<float>& y) {
    long double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += static_cast<long double>(x[i]) * y[i];
    return sum;
  };
  const long double want = std::exp(dot(q1, k1)) - std::exp(dot(q2, k2)) + 0.2L;
  EXPECT_NEAR(DiffLambda(q1, k1, q2, k2, 0.2), static_cast<double>(want), std::fabs(want) * kU + 0x1p-40);
  EXPECT_EQ(DiffLambda(q1, k1, q1, k1, 0.25), 0.25f);
}

}  // namespace
}  // namespace iha::kernels
