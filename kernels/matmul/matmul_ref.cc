#include "kernels/matmul/matmul.h"

namespace iha::kernels {

void GemmRef(const float* a, size_t lda, size_t m, const PackedWeights& w, double* c, size_t ldc) {
  for (size_t row = 0; row < m; ++row) {
    for (size_t n = 0; n < w.n(); ++n) {
      double sum = 0;
      for (size_t k = 0; k < w.k(); ++k) sum += static_cast<double>(a[row * lda + k]) * w.At(n, k);
      c[row * ldc + n] = sum;
    }
  }
}

}  // namespace iha::kernels
