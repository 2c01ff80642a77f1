#include "kernels/mlp/mlp.h"

#include <cmath>
#include <limits>

#include "kernels/support/exact_math.h"
#include "kernels/support/thread_pool.h"
#include "tests/kernels/kernel_test_util.h"

namespace iha::kernels {
namespace {

const Activation kActivations[] = {Activation::kSilu, Activation::kGeluTanh, Activation::kRelu, Activation::kIdentity};

float Sigmoid(float z) {
  const float e = ExpNeg(-std::fabs(z));
  return (z >= 0 ? 1.0f : e) / (1.0f + e);
}

// NUM-7, written plainly.
float Activate(Activation activation, float x) {
  switch (activation) {
    case Activation::kSilu:
      return x * Sigmoid(x);
    case Activation::kGeluTanh:
      return x * Sigmoid(1.59576912160573071f * std::fma(0.044715f * x, x * x, x));
    case Activation::kRelu:
      return x < 0 ? 0.0f : x;
    case Activation::kIdentity:
      return x;
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
      const double bound = (6 + (activation == Activation::kGeluTanh ? 5 * z : 0)) * u;
      // Below exp(-87) the result is 0: an absolute error of |x| 2^-125.
      EXPECT_LE(std::fabs(out[i] - want[i]), bound * std::fabs(want[i]) + std::fabs(x) * 0x1p-125) << x;
    }
  }
}

}  // namespace
}  // namespace iha::kernels
