#include "kernels/knocking/knocking.h"

#include <cmath>
#include <limits>

#include "kernels/support/thread_pool.h"
#include "tests/kernels/kernel_test_util.h"

namespace iha::kernels {
namespace {

// x M for a row vector x: a chain for each column.
std::vector<float> Times(const float* x, const std::vector<float>& m, size_t d) {
  std::vector<float> y(d, 0.0f);
  for (size_t j = 0; j < d; ++j) {
    for (size_t i = 0; i < d; ++i) y[j] = std::fma(x[i], m[i * d + j], y[j]);
  }
  return y;
}

// Replaces each head's row of x by f(row); what lies between the tokens stays.
template <class F>
std::vector<float> EachRow(const KnockingShape& shape, size_t d, std::vector<float> x, const F& f) {
  for (size_t t = 0; t < shape.tokens; ++t) {
    for (size_t h = 0; h < shape.heads; ++h) {
      float* row = &x[t * shape.stride + h * d];
      const std::vector<float> y = f(row);
      std::copy(y.begin(), y.end(), row);
    }
  }
  return x;
}

void ExpectNear(const KnockingShape& shape, size_t d, const std::vector<float>& got, const std::vector<double>& exact,
                double bound) {
  const size_t row = shape.heads * d;
  for (size_t i = 0; i < exact.size(); ++i) {
    ASSERT_LE(std::fabs(got[i / row * shape.stride + i % row] - exact[i]), bound) << i;
  }
}

TEST(Knocking, LinearFollowsTheRuleAndTheEquation) {
  ThreadPool one(1), three(3);
  for (const size_t d : {8, 20, 64}) {
    const KnockingShape shape{.tokens = 23, .heads = 3, .stride = 3 * d + 9};
    const std::vector<float> x = RandomFloats(23 * shape.stride, 1), t = RandomFloats(d * d, 2);
    const auto want = EachRow(shape, d, x, [&](const float* row) { return Times(row, t, d); });
    const PackedWeights packed = PackKnocking(t.data(), d);
    std::vector<float> scratch;
    ForEachTarget([&](const SimdTarget&) {
      for (ThreadPool* pool : {&one, &three}) {
        std::vector<float> got = x;
        KnockLinear(shape, packed, got.data(), scratch, *pool);
        ASSERT_EQ(FirstDifference(got, want), -1) << "d " << d;
      }
    });
    std::vector<double> exact(23 * 3 * d);
    KnockLinearRef(shape, d, t.data(), x.data(), exact.data());
    const double n = static_cast<double>(d);
    ExpectNear(shape, d, want, exact, n * n * 0x1p-24);  // a chain of d terms of at most 1
  }
}

TEST(Knocking, MlpFollowsTheRuleAndTheEquation) {
  ThreadPool one(1), three(3);
  for (const size_t d : {8, 20, 64}) {
    const KnockingShape shape{.tokens = 23, .heads = 3, .stride = 3 * d + 9};
    const std::vector<float> x = RandomFloats(23 * shape.stride, 1), up = RandomFloats(d * d, 2),
                             gate = RandomFloats(d * d, 3), down = RandomFloats(d * d, 4);
    const auto want = EachRow(shape, d, x, [&](const float* row) {
      std::vector<float> u = Times(row, up, d);
      const std::vector<float> g = Times(row, gate, d);
      for (size_t i = 0; i < d; ++i) u[i] *= SigmoidRule(g[i]);
      std::vector<float> y = Times(u.data(), down, d);
      for (float& value : y) value *= 2;
      return y;
    });
    const PackedWeights packed[] = {PackKnocking(up.data(), d), PackKnocking(gate.data(), d),
                                    PackKnocking(down.data(), d)};
    std::vector<float> scratch;
    ForEachTarget([&](const SimdTarget&) {
      for (ThreadPool* pool : {&one, &three}) {
        std::vector<float> got = x;
        KnockMlp(shape, packed[0], packed[1], packed[2], got.data(), scratch, *pool);
        ASSERT_EQ(FirstDifference(got, want), -1) << "d " << d;
      }
    });
    std::vector<double> exact(23 * 3 * d);
    KnockMlpRef(shape, d, up.data(), gate.data(), down.data(), x.data(), exact.data());
    // u, g: |.| <= d, off by d^2 u. The sigmoid's slope is at most 1/4, its own error 6 u: the product is off by
    // d^2 + d (d^2 / 4 + 6) + d; the last chain of d terms of at most d: d times that, and d d^2 of its own; twice.
    const double n = static_cast<double>(d), product = n * n + n * (n * n / 4 + 6) + n;
    ExpectNear(shape, d, want, exact, 2 * (n * product + n * n * n) * 0x1p-24);
  }
}

TEST(Knocking, RowsAreIndependentAndNaNStaysInItsRow) {
  SerialFor serial;
  const size_t d = 16;
  const std::vector<float> t = RandomFloats(d * d, 2);
  const PackedWeights packed = PackKnocking(t.data(), d);
  std::vector<float> x = RandomFloats(6 * d, 1), scratch;
  std::vector<float> alone(x.begin() + 4 * d, x.begin() + 5 * d);
  x[3 * d + 7] = std::numeric_limits<float>::quiet_NaN();
  KnockLinear({.tokens = 2, .heads = 3, .stride = 3 * d}, packed, x.data(), scratch, serial);
  KnockLinear({.tokens = 1, .heads = 1, .stride = d}, packed, alone.data(), scratch, serial);
  EXPECT_EQ(FirstDifference(&x[4 * d], alone.data(), d), -1);
  for (size_t i = 0; i < 6 * d; ++i) EXPECT_EQ(std::isnan(x[i]), i / d == 3) << i;
}

}  // namespace
}  // namespace iha::kernels
