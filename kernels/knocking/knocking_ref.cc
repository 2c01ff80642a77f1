#include <cmath>
#include <vector>

#include "kernels/knocking/knocking.h"

namespace iha::kernels {
namespace {

// y = x M for a row vector x.
template <class T>
std::vector<double> Times(const T* x, const float* m, size_t d) {
  std::vector<double> y(d, 0.0);
  for (size_t i = 0; i < d; ++i) {
    for (size_t j = 0; j < d; ++j) y[j] += static_cast<double>(x[i]) * m[i * d + j];
  }
  return y;
}

}  // namespace

void KnockLinearRef(const KnockingShape& shape, size_t d, const float* t, const float* x, double* y) {
  for (size_t token = 0; token < shape.tokens; ++token) {
    for (size_t h = 0; h < shape.heads; ++h) {
      for (const double value : Times(x + token * shape.stride + h * d, t, d)) *y++ = value;
    }
  }
}

void KnockMlpRef(const KnockingShape& shape, size_t d, const float* up, const float* gate, const float* down,
                 const float* x, double* y) {
  for (size_t token = 0; token < shape.tokens; ++token) {
    for (size_t h = 0; h < shape.heads; ++h) {
      const float* row = x + token * shape.stride + h * d;
      std::vector<double> u = Times(row, up, d);
      const std::vector<double> g = Times(row, gate, d);
      for (size_t i = 0; i < d; ++i) u[i] /= 1.0 + std::exp(-g[i]);
      for (const double value : Times(u.data(), down, d)) *y++ = 2 * value;
    }
  }
}

}  // namespace iha::kernels
