#include <cmath>

#include "kernels/diff/diff.h"

namespace iha::kernels {

void DiffGatedRef(const DiffShape& shape, const float* a, const float* logits, double* out) {
  for (size_t r = 0; r < shape.tokens * shape.pairs; ++r) {
    const double gate = 1.0 / (1.0 + std::exp(-static_cast<double>(logits[r])));
    const float* pair = a + r * 2 * shape.d;
    for (size_t i = 0; i < shape.d; ++i) *out++ = pair[i] - gate * pair[shape.d + i];
  }
}

void DiffNormedRef(const DiffShape& shape, const DiffNorm& norm, const float* a, double* out) {
  for (size_t r = 0; r < shape.tokens * shape.pairs; ++r) {
    const float* pair = a + r * 2 * shape.d;
    double square = 0;
    for (size_t i = 0; i < shape.d; ++i) {
      const double x = pair[i] - static_cast<double>(norm.lambda) * pair[shape.d + i];
      square += x * x;
    }
    const double r_rms = 1.0 / std::sqrt(square / static_cast<double>(shape.d) + norm.eps);
    for (size_t i = 0; i < shape.d; ++i) {
      const double x = pair[i] - static_cast<double>(norm.lambda) * pair[shape.d + i];
      *out++ = norm.scale * x * r_rms * norm.weight[i];
    }
  }
}

}  // namespace iha::kernels
