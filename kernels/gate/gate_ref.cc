#include <cmath>

#include "kernels/gate/gate.h"

namespace iha::kernels {

void GateRef(const GateShape& shape, const float* y, const float* g, double* z) {
  const size_t rows = shape.tokens * shape.heads;
  for (size_t r = 0; r < rows; ++r) {
    for (size_t i = 0; i < shape.d; ++i) {
      const double gate = shape.elementwise ? g[r * shape.d + i] : g[r];
      z[r * shape.d + i] = y[r * shape.d + i] / (1.0 + std::exp(-gate));
    }
  }
}

}  // namespace iha::kernels
