#include "kernels/mlp/mlp.h"

#include <cmath>
#include <limits>

#include "kernels/mlp/gelu_erf.h"
#include "kernels/support/exact_math.h"
#include "kernels/support/thread_pool.h"
#include "tests/kernels/kernel_test_util.h"
#include "tests/support/worst_error.h"

namespace iha::kernels {
namespace {

const Activation kActivations[] = {Activation::kSilu, Activation::kGeluTanh, Activation::kGeluErf, Activation::kRelu};

// NUM-7, written plainly.
float Activate(Activation activation, float x) {
  switch (activation) {
    case Activation::kSilu:
      return x * SigmoidRule(x);
    case Activation::kGeluTanh:
      return x * SigmoidRule(1.59576912160573071f * std::fma(0.044715f * x, x * x, x));
    case Activation::kGeluErf:
      return GeluErf(x);
    case Activation::kRelu:
      return x < 0 ? 0.0f : x;
  }
  return x;
}

std::vector<float> Inputs(size_t n) {
  std::vector<float> x = RandomFloats(n, 1, 12);
  const float special[] = {0.0f,
                           -0.0f,
                           100.0f,
                           -100.0f,
                           -87.0f,
                           1e30f,
                           -1e30f,
                           1e-40f,
                           std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::quiet_NaN()};
  for (size_t i = 0; i < n && i < std::size(special); ++i) x[i] = special[i];
  return x;
}

TEST(Mlp, BitsFollowTheRule) {
  ThreadPool one(1), three(3);
  for (const size_t n : {1, 15, 16, 33, 1536}) {
    const MlpShape shape{30, n, n + 2, n + 1, n};
    const std::vector<float> gate = Inputs(30 * shape.ld_gate), up = RandomFloats(30 * shape.ld_up, 2);
    for (const Activation activation : kActivations) {
      std::vector<float> want, plain;
      for (size_t row = 0; row < 30; ++row) {
        for (size_t i = 0; i < n; ++i) {
          plain.push_back(Activate(activation, gate[row * shape.ld_gate + i]));
          want.push_back(plain.back() * up[row * shape.ld_up + i]);
        }
      }
      ForEachTarget([&](const SimdTarget&) {
        for (ThreadPool* pool : {&one, &three}) {
          std::vector<float> out(30 * n);
          ActivationMul(activation, shape, gate.data(), up.data(), out.data(), *pool);
          ASSERT_EQ(FirstDifference(out, want), -1) << "n " << n << " activation " << static_cast<int>(activation);
          ActivationMul(activation, shape, gate.data(), nullptr, out.data(), *pool);
          ASSERT_EQ(FirstDifference(out, plain), -1) << "n " << n << " activation " << static_cast<int>(activation);
        }
      });
    }
  }
}

TEST(Mlp, ErrorBoundAgainstDouble) {
  SerialFor serial;
  const size_t n = 20000;
  const MlpShape shape{1, n, n, n, n};
  const std::vector<float> gate = RandomFloats(n, 1, 20);
  std::vector<float> out(n);
  std::vector<double> want(n);
  for (const Activation activation : kActivations) {
    ActivationMul(activation, shape, gate.data(), nullptr, out.data(), serial);
    ActivationMulRef(activation, shape, gate.data(), nullptr, want.data());
    for (size_t i = 0; i < n; ++i) {
      // sigmoid(z): exp 1.1 ulp (2.2 u), sum, division, the product with x: 6 u relative. The error of z reaches the
      // result times |z| (d log sigmoid <= 1): z of gelu takes 5 roundings with its constants.
      const double u = 0x1p-24, x = gate[i];
      const double z = 1.5957691216 * (std::fabs(x) + 0.044715 * std::fabs(x * x * x));
      if (activation == Activation::kGeluErf && x < -13) continue;  // GeluErf.* below
      const double terms = activation == Activation::kGeluTanh  ? 6 + 5 * z
                           : activation == Activation::kGeluErf ? 12
                                                                : 6;
      const double bound = terms * u;
      // Below exp(-87) the result is 0: an absolute error of |x| 2^-125.
      EXPECT_LE(std::fabs(out[i] - want[i]), bound * std::fabs(want[i]) + std::fabs(x) * 0x1p-125) << x;
    }
  }
}

// Every 251st fp32 of both signs and all exponents. The bound adds: P 1.3 u for its fit, 3 u for its last fmas and 2 u
// for the error of s; exp 2.2 u and one fma; sum, product, division and the product with x: 12 u. 1 - Q: Q <= 1/2, so
// half of Q's error, and 1 - Q >= 1/2.
TEST(GeluErf, WithinItsBoundOverAllExponents) {
  iha::testing::WorstError worst;
  float at = 0;
  for (uint32_t bits = 0; bits < 0x7F800000u; bits += 251) {
    for (const uint32_t sign : {0u, 0x80000000u}) {
      const float x = std::bit_cast<float>(bits | sign);
      const double got = GeluErf(x), want = x * 0.5 * std::erfc(-x * 0.70710678118654752440);
      if (x < -13) {
        ASSERT_LE(std::fabs(got - want), 1e-38) << x;
        ASSERT_LE(got, 0) << x;
        continue;
      }
      if (want == 0) {
        ASSERT_EQ(got, 0) << x;
        continue;
      }
      // A subnormal result is rounded to a multiple of 2^-149.
      if (worst.Add((std::fabs(got - want) - 0x1p-149) / std::fabs(want))) at = x;
    }
  }
  EXPECT_LE(worst.value(), 12 * 0x1p-24) << at;
  RecordProperty("worst_in_2^-24", std::to_string(worst.value() * 0x1p24));
}

TEST(GeluErf, SpecialValues) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(GeluErf(inf), inf);
  EXPECT_TRUE(std::isnan(GeluErf(-inf)));  // as 0.5 x (1 + erf(x / sqrt 2)) gives it
  EXPECT_TRUE(std::isnan(GeluErf(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_EQ(std::bit_cast<uint32_t>(GeluErf(0.0f)), 0u);
  EXPECT_EQ(std::bit_cast<uint32_t>(GeluErf(-0.0f)), 0x80000000u);
  EXPECT_EQ(GeluErf(-20.0f), 0.0f);
  EXPECT_EQ(GeluErf(20.0f), 20.0f);
}

}  // namespace
}  // namespace iha::kernels
