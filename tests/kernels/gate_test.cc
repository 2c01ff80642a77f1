#include "kernels/gate/gate.h"

#include <cmath>
#include <limits>

#include "kernels/support/thread_pool.h"
#include "tests/kernels/kernel_test_util.h"

namespace iha::kernels {
namespace {

TEST(Gate, FollowsTheRuleAndTheEquation) {
  ThreadPool one(1), three(3);
  for (const bool elementwise : {false, true}) {
    for (const size_t d : {1, 8, 16, 20, 64, 129}) {
      const GateShape shape{.tokens = 90, .heads = 5, .d = d, .elementwise = elementwise};
      const size_t n = 90 * 5 * d;
      const std::vector<float> y = RandomFloats(n, 1), g = RandomFloats(elementwise ? n : 90 * 5, 2, 30);
      std::vector<float> want(n);
      for (size_t i = 0; i < n; ++i) want[i] = y[i] * SigmoidRule(g[elementwise ? i : i / d]);
      ForEachTarget([&](const SimdTarget&) {
        for (ThreadPool* pool : {&one, &three}) {
          std::vector<float> got = y;
          Gate(shape, got.data(), g.data(), *pool);
          ASSERT_EQ(FirstDifference(got, want), -1) << "d " << d;
        }
      });
      std::vector<double> exact(n);
      GateRef(shape, y.data(), g.data(), exact.data());
      // exp 1.1 ulp (2.2 u), in the quotient's denominator at most half of that again, sum, division, product.
      for (size_t i = 0; i < n; ++i) ASSERT_LE(std::fabs(want[i] - exact[i]), 7 * 0x1p-24 * std::fabs(exact[i])) << i;
    }
  }
}

TEST(Gate, ExtremesOpenCloseAndNaNStaysInItsHead) {
  SerialFor serial;
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> y(4 * 20, 3.0f);
  const std::vector<float> g = {inf, -inf, 0.0f, std::numeric_limits<float>::quiet_NaN()};
  Gate({.tokens = 2, .heads = 2, .d = 20}, y.data(), g.data(), serial);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(y[i], 3.0f);
    EXPECT_EQ(y[20 + i], 0.0f);
    EXPECT_EQ(y[40 + i], 1.5f);
    EXPECT_TRUE(std::isnan(y[60 + i]));
  }
}

}  // namespace
}  // namespace iha::kernels
