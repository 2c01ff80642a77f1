// iha_collapse.h: the outputs of P pseudo heads back to one row a head, with XSA on the pseudo rows before it.
//
// a: [token][h][j][d], the attention outputs. Per head: O[h] = sum_j R[h][j] a[h][j], R [heads][P]. Global: O[h] =
// sum over i, j of R[h][i P + j] a[i][j], R [heads][heads P]. One fma chain in increasing j (global: i P + j) from +0.
// XSA first, if v is given (same shape as a): z = a - (a . u) u, u = v / max(||v||, 1e-12), of each row:
//   dot and square in 16 lanes, L[i mod 16] = fma(.., .., L[i mod 16]) in increasing i, folded 16 -> 1;
//   u_i = v_i / max(sqrt(square), 1e-12); s = dot of a and u; z_i = fma(-s, u_i, a_i).
// A NaN in v makes its row NaN. Rows of different tokens are independent. Blocks until written; out may not overlap.
// Source: paper.md, Definition step 6 (Definition 3 and Algorithm 1); checkpoints.md, modifiers.
#pragma once

#include <cstddef>

#include "kernels/support/parallel_for.h"

namespace iha::kernels {

struct IhaCollapseShape {
  size_t tokens = 0;
  size_t heads = 0;
  size_t pseudo = 0;
  size_t d = 0;
  bool global = false;
};

// v: null for no XSA. out: [token][heads][d].
void IhaCollapse(const IhaCollapseShape& shape, const float* collapse, const float* a, const float* v, float* out,
                 ParallelFor& parallel);
// In double, straight from the equations.
void IhaCollapseRef(const IhaCollapseShape& shape, const float* collapse, const float* a, const float* v, double* out);

}  // namespace iha::kernels
