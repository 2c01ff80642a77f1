// diff.h: what the two kinds of differential attention do with the outputs of a head pair (2i, 2i + 1).
//
// Gated (diff_v2): O_i = A_2i - sigmoid(l_i) A_2i+1, one fma; sigmoid as in gate.h.
// Normed (diff): x = fma(-lambda, A_2i+1, A_2i); O_i = scale * RMSNorm(x) * weight with NUM-6's order, the scale a
// rounded product at the end. lambda = exp(lq1 . lk1) - exp(lq2 . lk2) + lambda_init in double by fixed operations (one
// fma chain a dot product, ExactExp), rounded once to fp32.
// NUM-14. Rows are independent; out may not overlap a. Blocks until written.
// Source: checkpoints.md, kinds diff and diff_v2.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/support/parallel_for.h"

namespace iha::kernels {

struct DiffShape {
  size_t tokens = 0;
  size_t pairs = 0;
  size_t d = 0;  // of one head's output (diff: 2 head_dim)
};

// a: [tokens][2 pairs][d]; logits: [tokens][pairs]; out: [tokens][pairs][d].
void DiffGated(const DiffShape& shape, const float* a, const float* logits, float* out, ParallelFor& parallel);
void DiffGatedRef(const DiffShape& shape, const float* a, const float* logits, double* out);

struct DiffNorm {
  float lambda = 0;
  const float* weight = nullptr;  // [d], shared by the pairs
  float eps = 0;
  float scale = 1;  // 1 - lambda_init
};
void DiffNormed(const DiffShape& shape, const DiffNorm& norm, const float* a, float* out, ParallelFor& parallel);
void DiffNormedRef(const DiffShape& shape, const DiffNorm& norm, const float* a, double* out);

// All four of equal length.
float DiffLambda(std::span<const float> q1, std::span<const float> k1, std::span<const float> q2,
                 std::span<const float> k2, double lambda_init);

}  // namespace iha::kernels
