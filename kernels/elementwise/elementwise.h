// elementwise.h: sums and products of one rounding each, rows strided. Blocks until written; outputs may alias inputs
// exactly (same pointer and stride), not partly. Elements are independent of each other, so threads and width change no
// bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/support/parallel_for.h"

namespace iha::kernels {

struct Rows {
  size_t rows = 0;
  size_t n = 0;
  size_t ld = 0;  // floats between rows of the matrix that is changed
};

// x += y, y with ldy floats between rows; ldy = 0 adds the same row (a bias) to every row.
void AddInPlace(const Rows& shape, float* x, const float* y, size_t ldy, ParallelFor& parallel);
// x *= scale
void ScaleInPlace(const Rows& shape, float* x, float scale, ParallelFor& parallel);

// Plain double references, out dense [rows][n]: x + y, ld of x; rows ids[r] of a table, ld of it, times scale.
void AddRef(const Rows& shape, const float* x, const float* y, size_t ldy, double* out);
void EmbedRef(const Rows& shape, const float* table, const int32_t* ids, float scale, double* out);

}  // namespace iha::kernels
