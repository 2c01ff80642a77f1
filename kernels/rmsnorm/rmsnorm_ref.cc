#include <cmath>

#include "kernels/rmsnorm/rmsnorm.h"

namespace iha::kernels {

void RmsNormRef(const RmsNormShape& shape, const float* x, const float* weight, double* y) {
  for (size_t row = 0; row < shape.rows; ++row) {
    const float* in = x + row * shape.ldx;
    double sum = 0;
    for (size_t i = 0; i < shape.n; ++i) sum += static_cast<double>(in[i]) * in[i];
    const double r = 1.0 / std::sqrt(sum / static_cast<double>(shape.n) + shape.eps);
    for (size_t i = 0; i < shape.n; ++i) {
      const double g = weight == nullptr ? 1.0 : weight[i] + (shape.weight_plus_one ? 1.0 : 0.0);
      y[row * shape.n + i] = in[i] * r * g;
    }
  }
}

}  // namespace iha::kernels
