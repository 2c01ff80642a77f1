// rmsnorm.h: y = (x * r) * g, r = 1 / sqrt(mean(x^2) + eps), per row.
//
// Order (NUM-6): 16 lanes, L[i mod 16] = fma(x_i, x_i, L[i mod 16]) in increasing i, folded 16 -> 1; then sum / n, +
// eps, InvSqrt; then x_i * r, rounded, times g_i, rounded. g_i is the weight, 1 + weight (rounded; Gemma), or 1 (no
// product). Rows are independent. x and y may be the same rows. Blocks until written.
#pragma once

#include <cstddef>

#include "kernels/support/parallel_for.h"

namespace iha::kernels {

struct RmsNormShape {
  size_t rows = 0;
  size_t n = 0;    // length of a row, > 0
  size_t ldx = 0;  // floats between rows of x
  size_t ldy = 0;  // floats between rows of y
  float eps = 1e-5f;
  bool weight_plus_one = false;
};

// weight: [n], or null for none.
void RmsNorm(const RmsNormShape& shape, const float* x, const float* weight, float* y, ParallelFor& parallel);
// In double, y dense [rows][n].
void RmsNormRef(const RmsNormShape& shape, const float* x, const float* weight, double* y);

}  // namespace iha::kernels
