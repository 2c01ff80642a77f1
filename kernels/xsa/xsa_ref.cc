#include <algorithm>
#include <cmath>

#include "kernels/xsa/xsa.h"

namespace iha::kernels {

void XsaRef(const XsaShape& shape, const float* y, const float* v, double* z) {
  for (size_t t = 0; t < shape.tokens; ++t) {
    for (size_t h = 0; h < shape.heads; ++h) {
      const float* row = y + t * shape.y_stride + h * shape.d;
      const float* value = v + t * shape.v_stride + h / shape.group * shape.d;
      double square = 0, dot = 0;
      for (size_t i = 0; i < shape.d; ++i) square += static_cast<double>(value[i]) * value[i];
      const double norm = std::sqrt(square);
      const double divisor = norm < 1e-12 ? 1e-12 : norm;
      for (size_t i = 0; i < shape.d; ++i) dot += row[i] * (value[i] / divisor);
      for (size_t i = 0; i < shape.d; ++i) *z++ = row[i] - dot * (value[i] / divisor);
    }
  }
}

}  // namespace iha::kernels
