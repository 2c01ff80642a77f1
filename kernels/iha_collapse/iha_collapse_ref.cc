#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/iha_collapse/iha_collapse.h"

namespace iha::kernels {

void IhaCollapseRef(const IhaCollapseShape& shape, const float* collapse, const float* a, const float* v, double* out) {
  const size_t heads = shape.heads, pseudo = shape.pseudo, d = shape.d, rows = heads * pseudo;
  std::vector<double> z(rows * d);
  for (size_t t = 0; t < shape.tokens; ++t) {
    for (size_t r = 0; r < rows; ++r) {
      const float* y = a + (t * rows + r) * d;
      std::copy(y, y + d, &z[r * d]);
      if (v == nullptr) continue;
      // checkpoints.md, xsa: z = y - (y . u) u, u = v / max(||v||, 1e-12).
      const float* value = v + (t * rows + r) * d;
      double square = 0, dot = 0;
      for (size_t i = 0; i < d; ++i) square += static_cast<double>(value[i]) * value[i];
      const double norm = std::max(std::sqrt(square), 1e-12);
      for (size_t i = 0; i < d; ++i) dot += y[i] * (value[i] / norm);
      for (size_t i = 0; i < d; ++i) z[r * d + i] -= dot * (value[i] / norm);
    }
    for (size_t h = 0; h < heads; ++h) {
      for (size_t i = 0; i < d; ++i) {
        double sum = 0;
        if (shape.global) {  // paper Definition 3: O[h] = sum_(i,j) R[h, i P + j] A[i,j]
          for (size_t r = 0; r < rows; ++r) sum += collapse[h * rows + r] * z[r * d + i];
        } else {  // paper Algorithm 1: O[h] = sum_j R[h,j] A[h,j]
          for (size_t j = 0; j < pseudo; ++j) sum += collapse[h * pseudo + j] * z[(h * pseudo + j) * d + i];
        }
        out[(t * heads + h) * d + i] = sum;
      }
    }
  }
}

}  // namespace iha::kernels
