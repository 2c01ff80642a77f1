#include "kernels/xsa/xsa.h"

#include <array>
#include <cmath>
#include <limits>

#include "kernels/support/thread_pool.h"
#include "tests/kernels/kernel_test_util.h"

namespace iha::kernels {
namespace {

TEST(Xsa, FollowsTheRuleAndTheEquation) {
  ThreadPool one(1), three(3);
  for (const auto& [tokens, heads, group, d] :
       {std::array<size_t, 4>{11, 4, 1, 16}, {300, 6, 3, 20}, {1, 1, 1, 1}, {5, 8, 8, 64}, {3, 2, 1, 129}}) {
    const XsaShape shape{tokens, heads, group, d, heads * d + 5, heads / group * d + 7};
    std::vector<float> y = RandomFloats(tokens * shape.y_stride, 1);
    const std::vector<float> v = RandomFloats(tokens * shape.v_stride, 2);
    std::vector<float> want = y;
    for (size_t r = 0; r < tokens * heads; ++r) {
      const size_t t = r / heads, h = r % heads;
      float* at = &want[t * shape.y_stride + h * d];
      const std::vector<float> z = XsaRule(at, &v[t * shape.v_stride + h / group * d], d);
      std::copy(z.begin(), z.end(), at);
    }
    ForEachTarget([&](const SimdTarget&) {
      for (ThreadPool* pool : {&one, &three}) {
        std::vector<float> got = y;
        Xsa(shape, got.data(), v.data(), *pool);
        ASSERT_EQ(FirstDifference(got, want), -1) << "d " << d;  // what lies between the rows included
      }
    });
    // u = 2^-24, |y| <= 1, |u_i| <= 1: the dot of d terms errs by (d / 16 + 5) u sqrt d, u_i by (d / 32 + 5) u (half
    // the square's, root, division) both in the dot and in the product, and the last fma rounds |z| <= 1 + sqrt d.
    std::vector<double> exact(tokens * heads * d);
    XsaRef(shape, y.data(), v.data(), exact.data());
    const double dd = static_cast<double>(d), root = std::sqrt(dd);
    const double bound = ((dd / 16 + 5) * root + 2 * (dd / 32 + 5) * root + 1 + root) * 0x1p-24;
    for (size_t i = 0; i < exact.size(); ++i) {
      ASSERT_LE(std::fabs(want[i / (heads * d) * shape.y_stride + i % (heads * d)] - exact[i]), bound) << i;
    }
  }
}

// What is left along v: the error of each z_i (the bound above, 50 u at d = 32) times |v|_1 <= 32.
TEST(Xsa, LeavesNothingAlongTheValue) {
  SerialFor serial;
  std::vector<float> y = RandomFloats(100 * 32, 1, 3);
  const std::vector<float> v = RandomFloats(100 * 32, 2);
  Xsa({100, 1, 1, 32, 32, 32}, y.data(), v.data(), serial);
  for (size_t t = 0; t < 100; ++t) {
    double along = 0;
    for (size_t i = 0; i < 32; ++i) along += static_cast<double>(y[t * 32 + i]) * v[t * 32 + i];
    EXPECT_LT(std::fabs(along), 3 * 50 * 32 * 0x1p-24) << t;
  }
}

TEST(Xsa, ZeroAndTinyValuesExcludeNothingAndNaNStaysInItsRow) {
  SerialFor serial;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> y = RandomFloats(4 * 20, 1);
  std::vector<float> v = RandomFloats(4 * 20, 2), z = y;
  std::fill_n(v.begin(), 20, 0.0f);
  std::fill_n(v.begin() + 20, 20, 1e-25f);  // its square is 0: the divisor is 1e-12
  v[2 * 20 + 7] = nan;
  z[3 * 20 + 19] = nan;
  Xsa({4, 1, 1, 20, 20, 20}, z.data(), v.data(), serial);
  EXPECT_EQ(FirstDifference(z.data(), y.data(), 40), -1);
  for (size_t i = 40; i < 80; ++i) EXPECT_TRUE(std::isnan(z[i])) << i;
}

}  // namespace
}  // namespace iha::kernels
