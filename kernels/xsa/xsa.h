// xsa.h: exclusive self attention: a row without its part along the token's own value (Exclusive Self Attention).
//
// z = y - (y . u) u, u = v / max(||v||, 1e-12). Fixed order (NUM-11): dot and square in 16 lanes, L[i mod 16] =
// fma(.., .., L[i mod 16]) in increasing i, folded 16 -> 1; u_i = v_i / max(sqrt(square), 1e-12); s = dot of y and u;
// z_i = fma(-s, u_i, y_i). A NaN in v or y makes its row NaN. Rows are independent. In place. Blocks until written.
// Source: checkpoints.md, modifiers (`xsa`: output). The pseudo stage is the same row operation inside iha_collapse.
#pragma once

#include <cstddef>

#include "kernels/support/parallel_for.h"

namespace iha::kernels {

inline constexpr size_t kXsaMaxDim = 1024;  // of d: kMaxHeadDim of attention, twice for pairs

struct XsaShape {
  size_t tokens = 0;
  size_t heads = 0;
  size_t group = 1;     // heads that share a value head; head h uses value h / group
  size_t d = 0;         // floats between heads of one token too, of y and of v
  size_t y_stride = 0;  // floats between tokens of y
  size_t v_stride = 0;  // floats between tokens of v
};

void Xsa(const XsaShape& shape, float* y, const float* v, ParallelFor& parallel);
// In double, straight from the equation; z dense [tokens][heads][d].
void XsaRef(const XsaShape& shape, const float* y, const float* v, double* z);

}  // namespace iha::kernels
