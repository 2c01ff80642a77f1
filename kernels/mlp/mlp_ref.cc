#include <cmath>

#include "kernels/mlp/mlp.h"

namespace iha::kernels {
namespace {

double Activate(Activation activation, double x) {
  switch (activation) {
    case Activation::kSilu:
      return x / (1.0 + std::exp(-x));
    case Activation::kGeluTanh:
      // 0.5 (1 + tanh(u)) written as 1 / (1 + exp(-2 u)): for x << 0 the sum 1 + tanh cancels even in double.
      return x / (1.0 + std::exp(-2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case Activation::kGeluErf:
      return x * 0.5 * std::erfc(-x * 0.70710678118654752440);
    case Activation::kRelu:
      return x < 0 ? 0.0 : x;
  }
  return x;
}

}  // namespace

void ActivationMulRef(Activation activation, const MlpShape& shape, const float* gate, const float* up, double* out) {
  for (size_t row = 0; row < shape.rows; ++row) {
    for (size_t i = 0; i < shape.n; ++i) {
      const double a = Activate(activation, gate[row * shape.ld_gate + i]);
      out[row * shape.n + i] = up == nullptr ? a : a * up[row * shape.ld_up + i];
    }
  }
}

}  // namespace iha::kernels
