// Plain loops: one IEEE operation per element, so the compiler's own vectors cannot change a bit.
#include "kernels/elementwise/elementwise.h"

#include <cmath>

#include "kernels/support/row_chunks.h"

namespace iha::kernels {

void AddInPlace(const Rows& shape, float* x, const float* y, size_t ldy, ParallelFor& parallel) {
  ForRowChunks(shape.rows, shape.n, parallel, [&](size_t r0, size_t r1) {
    for (size_t r = r0; r < r1; ++r) {
      float* to = x + r * shape.ld;
      const float* from = y + r * ldy;
      for (size_t i = 0; i < shape.n; ++i) to[i] += from[i];
    }
  });
}

void ScaleInPlace(const Rows& shape, float* x, float scale, ParallelFor& parallel) {
  ForRowChunks(shape.rows, shape.n, parallel, [&](size_t r0, size_t r1) {
    for (size_t r = r0; r < r1; ++r) {
      for (size_t i = 0; i < shape.n; ++i) x[r * shape.ld + i] *= scale;
    }
  });
}

}  // namespace iha::kernels
