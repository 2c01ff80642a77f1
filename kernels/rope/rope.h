// rope.h: rotary embedding with tables computed once.
//
// Tables (NUM-5): cos and sin of position * frequency in double by fixed operations, rounded once to fp32. Rotation of
// a pair (u, v): u' = fma(u, cos, -(v * sin)), v' = fma(v, cos, u * sin); the inner product is rounded. Any attention
// factor of the scaling is the caller's to multiply (into q and k, or a table with `factor`).
// Pure apart from the output; Rope blocks until written.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/support/parallel_for.h"

namespace iha::kernels {

enum class RopePairing {
  kHalf,         // (x[i], x[i + half]): Llama, Qwen, Gemma in the Hugging Face layout
  kInterleaved,  // (x[2i], x[2i + 1])
};

// Rows for positions pos0 .. pos0 + count - 1: cos[row][i] = fp32(factor * cos(position * frequency[i])), i < half.
// While position * frequency stays below 2^21 (exact_math.h) the absolute error before rounding is below 2^-50 *
// factor.
void FillRopeTable(const double* frequency, size_t half, uint32_t pos0, size_t count, double factor, float* cos,
                   float* sin);

struct RopeShape {
  size_t tokens = 0;
  size_t heads = 0;
  size_t token_stride = 0;  // floats between tokens of x
  size_t head_stride = 0;   // floats between heads of one token
  size_t rotary_dim = 0;    // even; elements past it are left alone
  RopePairing pairing = RopePairing::kHalf;
};

// In place. Token t is rotated by row positions[t] of the tables ([..][rotary_dim / 2]).
void Rope(const RopeShape& shape, float* x, const uint32_t* positions, const float* cos, const float* sin,
          ParallelFor& parallel);
// In double from the same tables: y is dense [tokens][heads][rotary_dim].
void RopeRef(const RopeShape& shape, const float* x, const uint32_t* positions, const float* cos, const float* sin,
             double* y);

}  // namespace iha::kernels
