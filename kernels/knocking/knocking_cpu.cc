#include <algorithm>

#include "kernels/elementwise/elementwise.h"
#include "kernels/gate/gate.h"
#include "kernels/knocking/knocking.h"

namespace iha::kernels {
namespace {

// The rows of all tokens and heads as one dense matrix [tokens * heads][d], and back.
void Gather(const KnockingShape& shape, size_t d, const float* x, float* dense) {
  for (size_t t = 0; t < shape.tokens; ++t) {
    std::copy_n(x + t * shape.stride, shape.heads * d, dense + t * shape.heads * d);
  }
}

void Scatter(const KnockingShape& shape, size_t d, const float* dense, float* x) {
  for (size_t t = 0; t < shape.tokens; ++t) {
    std::copy_n(dense + t * shape.heads * d, shape.heads * d, x + t * shape.stride);
  }
}

}  // namespace

PackedWeights PackKnocking(const float* t, size_t d) {
  std::vector<float> transposed(d * d);  // matmul computes x W^T
  for (size_t i = 0; i < d; ++i) {
    for (size_t j = 0; j < d; ++j) transposed[j * d + i] = t[i * d + j];
  }
  return Pack(StorageType::kF32, transposed.data(), d, d);
}

void KnockLinear(const KnockingShape& shape, const PackedWeights& t, float* x, std::vector<float>& scratch,
                 ParallelFor& parallel) {
  const size_t d = t.n(), rows = shape.tokens * shape.heads;
  scratch.resize(2 * rows * d);
  float* dense = scratch.data();
  float* result = dense + rows * d;
  Gather(shape, d, x, dense);
  Gemm(dense, d, rows, t, result, d, parallel);
  Scatter(shape, d, result, x);
}

void KnockMlp(const KnockingShape& shape, const PackedWeights& up, const PackedWeights& gate, const PackedWeights& down,
              float* x, std::vector<float>& scratch, ParallelFor& parallel) {
  const size_t d = up.n(), rows = shape.tokens * shape.heads;
  scratch.resize(3 * rows * d);
  float* dense = scratch.data();
  float* u = dense + rows * d;
  float* g = u + rows * d;
  Gather(shape, d, x, dense);
  Gemm(dense, d, rows, up, u, d, parallel);
  Gemm(dense, d, rows, gate, g, d, parallel);
  Gate({.tokens = rows, .heads = 1, .d = d, .elementwise = true}, u, g, parallel);
  Gemm(u, d, rows, down, dense, d, parallel);
  ScaleInPlace({.rows = rows, .n = d, .ld = d}, dense, 2.0f, parallel);
  Scatter(shape, d, dense, x);
}

}  // namespace iha::kernels
