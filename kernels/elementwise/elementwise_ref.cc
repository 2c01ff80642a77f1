#include "kernels/elementwise/elementwise.h"

namespace iha::kernels {

void AddRef(const Rows& shape, const float* x, const float* y, size_t ldy, double* out) {
  for (size_t r = 0; r < shape.rows; ++r) {
    for (size_t i = 0; i < shape.n; ++i) {
      out[r * shape.n + i] = static_cast<double>(x[r * shape.ld + i]) + static_cast<double>(y[r * ldy + i]);
    }
  }
}

void EmbedRef(const Rows& shape, const float* table, const int32_t* ids, float scale, double* out) {
  for (size_t r = 0; r < shape.rows; ++r) {
    const float* const row = table + static_cast<size_t>(ids[r]) * shape.ld;
    for (size_t i = 0; i < shape.n; ++i) out[r * shape.n + i] = static_cast<double>(row[i]) * scale;
  }
}

}  // namespace iha::kernels
