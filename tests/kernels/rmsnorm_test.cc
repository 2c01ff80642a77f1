#include "kernels/rmsnorm/rmsnorm.h"

#include <cmath>
#include <limits>

#include "kernels/support/exact_math.h"
#include "kernels/support/thread_pool.h"
#include "tests/kernels/kernel_test_util.h"

namespace iha::kernels {
namespace {

// NUM-6, written plainly.
std::vector<float> Rule(const RmsNormShape& s, const std::vector<float>& x, const float* weight) {
  std::vector<float> y(s.rows * s.n);
  for (size_t row = 0; row < s.rows; ++row) {
    float lanes[16] = {};
    for (size_t i = 0; i < s.n; ++i) {
      lanes[i % 16] = std::fma(x[row * s.ldx + i], x[row * s.ldx + i], lanes[i % 16]);
    }
    const float r = InvSqrt(Fold16(lanes) / static_cast<float>(s.n) + s.eps);
    for (size_t i = 0; i < s.n; ++i) {
      float value = x[row * s.ldx + i] * r;
      if (weight != nullptr) value *= s.weight_plus_one ? weight[i] + 1.0f : weight[i];
      y[row * s.n + i] = value;
    }
  }
  return y;
}

TEST(RmsNorm, BitsFollowTheRule) {
  ThreadPool one(1), three(3);
  for (const size_t n : {1, 15, 16, 17, 64, 576, 577, 2048}) {
    const RmsNormShape base{40, n, n + 3, n, 1e-5f, false};
    const std::vector<float> x = RandomFloats(base.rows * base.ldx, 1, 4), weight = RandomFloats(n, 2);
    for (const int mode : {0, 1, 2}) {
      RmsNormShape shape = base;
      shape.weight_plus_one = mode == 1;
      const float* w = mode == 2 ? nullptr : weight.data();
      const std::vector<float> want = Rule(shape, x, w);
      ForEachTarget([&](const SimdTarget&) {
        for (ThreadPool* pool : {&one, &three}) {
          std::vector<float> y(shape.rows * n, std::numeric_limits<float>::quiet_NaN());
          RmsNorm(shape, x.data(), w, y.data(), *pool);
          ASSERT_EQ(FirstDifference(y, want), -1) << "n " << n << " mode " << mode;
          // In place, rows one by one: a row does not see the batch.
          std::vector<float> z = x;
          for (size_t row = 0; row < shape.rows; ++row) {
            RmsNormShape alone = shape;
            alone.rows = 1;
            RmsNorm(alone, &z[row * shape.ldx], w, &z[row * shape.ldx], *pool);
            ASSERT_EQ(FirstDifference(&z[row * shape.ldx], &want[row * n], n), -1);
          }
        }
      });
    }
  }
}

TEST(RmsNorm, ErrorBoundAgainstDouble) {
  SerialFor serial;
  const RmsNormShape shape{10, 2048, 2048, 2048, 1e-6f, true};
  const std::vector<float> x = RandomFloats(shape.rows * shape.n, 1), weight = RandomFloats(shape.n, 2);
  std::vector<float> y(x.size());
  std::vector<double> want(x.size());
  RmsNorm(shape, x.data(), weight.data(), y.data(), serial);
  RmsNormRef(shape, x.data(), weight.data(), want.data());
  // u = 2^-24: each lane adds n / 16 squares, the fold 4 more, the mean and eps 2, all halved by the root; root,
  // division, two products and 1 + w: 5. Positive sums, so the bound is relative; 1 + w may cancel, w itself is exact.
  const double u = 0x1p-24, bound = (static_cast<double>(shape.n) / 16 + 6) / 2 * u + 5 * u;
  for (size_t i = 0; i < x.size(); ++i) EXPECT_LE(std::fabs(y[i] - want[i]), bound * std::fabs(want[i]) + u) << i;
}

}  // namespace
}  // namespace iha::kernels
