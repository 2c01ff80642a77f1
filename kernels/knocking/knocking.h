// knocking.h: knocking-heads: the heads of one projection through d x d matrices that all of them share.
//
// Row vectors x [d] of every head of every token, in place. Linear: x' = x T. Mlp: x' = 2 ((x U) * sigmoid(x G)) W.
// Products are NUM-2 chains (matmul.h), the sigmoid NUM-7's, u * sig one rounded product; times 2 is exact. Rows are
// independent, so batch, threads and vector width change no bit. Blocks until written.
// Source: checkpoints.md, modifiers (`knocking`).
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/matmul/matmul.h"
#include "kernels/support/parallel_for.h"

namespace iha::kernels {

struct KnockingShape {
  size_t tokens = 0;
  size_t heads = 0;   // next to each other, d floats each
  size_t stride = 0;  // floats between tokens
};

// The matrix of x T as matmul packs it, from T [d][d] as stored (row-major, x is a row vector).
PackedWeights PackKnocking(const float* t, size_t d);

// scratch grows as needed and holds nothing between calls.
void KnockLinear(const KnockingShape& shape, const PackedWeights& t, float* x, std::vector<float>& scratch,
                 ParallelFor& parallel);
void KnockMlp(const KnockingShape& shape, const PackedWeights& up, const PackedWeights& gate, const PackedWeights& down,
              float* x, std::vector<float>& scratch, ParallelFor& parallel);

// In double from T, U, G, W as stored; y dense [tokens][heads][d].
void KnockLinearRef(const KnockingShape& shape, size_t d, const float* t, const float* x, double* y);
void KnockMlpRef(const KnockingShape& shape, size_t d, const float* up, const float* gate, const float* down,
                 const float* x, double* y);

}  // namespace iha::kernels
