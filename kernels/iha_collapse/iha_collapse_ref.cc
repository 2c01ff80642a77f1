#include <algorithm>
#include <vector>

#include "kernels/iha_collapse/iha_collapse.h"
#include "kernels/xsa/xsa.h"

namespace iha::kernels {

void IhaCollapseRef(const IhaCollapseShape& shape, const float* collapse, const float* a, const float* v, double* out) {
  const size_t heads = shape.heads, pseudo = shape.pseudo, d = shape.d, rows = heads * pseudo;
  std::vector<double> z(rows * d);
  for (size_t t = 0; t < shape.tokens; ++t) {
    const float* y = a + t * rows * d;
    if (v == nullptr) {
      std::copy(y, y + rows * d, z.begin());
    } else {
      const XsaShape pseudo_rows{.tokens = rows, .heads = 1, .d = d, .y_stride = d, .v_stride = d};
      XsaRef(pseudo_rows, y, v + t * rows * d, z.data());
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
