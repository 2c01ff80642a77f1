// matmul.h: C = A W^T with packed weights, one fma chain per output (docs/contracts/numerics.md, NUM-2).
//
//   acc = +0;  for k = 0 .. K-1:  acc = fma(A[m][k], W[n][k], acc);  C[m][n] = acc        (fp32)
//
// W is the stored weight widened exactly. No second accumulator, no split of K, so the bits of C[m][n] depend on row m
// of A and row n of W only: not on M, the tile, the thread count or the vector width.
//
// Layout of a packed matrix, the same on every machine: panels of 16 rows of W (columns of C), the last one filled up
// with zeros. Inside a panel: kF32 [k][16] float; kF16 [k][16] half; kBF16 [ceil(k/2)][16] pairs, low half = even k;
// kAffine [ceil(k/16)] AffinePanelBlock, 1.5 bytes a weight.
// Threads: Gemm may be called from several threads with different ParallelFor objects; it blocks until C is written and
// keeps no pointer. Arguments are trusted (a wrong shape is a bug of the caller): debug builds assert.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/matmul/affine_blocks.h"
#include "kernels/support/parallel_for.h"
#include "kernels/support/small_float.h"
#include "kernels/support/weight_arena.h"

namespace iha::kernels {

inline constexpr size_t kPanelRows = 16;

// What a matrix holds: a storage type, or the blocks of affine_blocks.h. The arithmetic is on the fp32 values either
// way, so the form changes no bit.
enum class WeightForm { kF32, kBF16, kF16, kAffine };
constexpr WeightForm FormOf(StorageType type) {
  return type == StorageType::kBF16  ? WeightForm::kBF16
         : type == StorageType::kF16 ? WeightForm::kF16
                                     : WeightForm::kF32;
}

// 16 k of a panel's 16 rows: value [k][row] = fma(scale[row], q[k][row], offset[row]), exactly the weight.
struct AffinePanelBlock {
  float scale[kPanelRows], offset[kPanelRows];
  int8_t q[kAffineBlock][kPanelRows];
};

class PackedWeights {
 public:
  PackedWeights() = default;
  // All rows zero; fill them with PackRows or PackAffineRows. In memory of its own, or beside others in `arena`.
  PackedWeights(WeightForm form, size_t n, size_t k, WeightArena* arena = nullptr);
  PackedWeights(StorageType type, size_t n, size_t k) : PackedWeights(FormOf(type), n, k) {}
  PackedWeights(PackedWeights&&) = default;
  PackedWeights& operator=(PackedWeights&&) = default;

  [[nodiscard]] WeightForm form() const { return form_; }
  [[nodiscard]] size_t n() const { return n_; }  // rows of W = columns of C
  [[nodiscard]] size_t k() const { return k_; }
  [[nodiscard]] size_t panels() const { return (n_ + kPanelRows - 1) / kPanelRows; }
  [[nodiscard]] size_t panel_bytes() const { return panel_bytes_; }
  [[nodiscard]] size_t bytes() const { return panels() * panel_bytes_; }
  [[nodiscard]] const uint8_t* panel(size_t p) const { return data_.get() + p * panel_bytes_; }
  // The exact fp32 value that the kernels use for W[n][k].
  [[nodiscard]] float At(size_t n, size_t k) const;

  // Rows n0 .. n0 + rows - 1 from row-major `source` of the matrix's own storage type, consecutive rows `stride`
  // elements apart. Any n0, so that several tensors can be packed into one matrix (q, k, v). Calls for rows of
  // different panels may run in parallel.
  void PackRows(size_t n0, const void* source, size_t rows, size_t stride);
  // The same for kAffine, from fp32 at any alignment. False when a block of some row has no affine form: the matrix is
  // then of no use, and another form takes the rows.
  [[nodiscard]] bool PackAffineRows(size_t n0, const void* source, size_t rows, size_t stride);

 private:
  WeightForm form_ = WeightForm::kF32;
  size_t n_ = 0, k_ = 0, panel_bytes_ = 0;
  std::shared_ptr<uint8_t> data_;  // one owner; what it goes back to depends on where it came from
};

// The whole of a row-major [n][k] tensor of storage type `type`.
PackedWeights Pack(StorageType type, const void* source, size_t n, size_t k);

// Choices that must never change a bit; the tests turn them, everyone else leaves the defaults.
struct GemmTuning {
  int max_rows = 0;      // rows of a register tile; 0: the target's own
  size_t k_block = 0;    // k of one pass over a panel; 0: automatic
  size_t row_block = 0;  // rows of A packed at a time; 0: automatic
};

// c[m][0 .. n-1] for m rows of a; lda >= k and ldc >= n are in floats. m = 0 or n = 0: nothing is written. k = 0: +0.
void Gemm(const float* a, size_t lda, size_t m, const PackedWeights& w, float* c, size_t ldc, ParallelFor& parallel,
          const GemmTuning& tuning = {});

// Reference in double from the same weights (sum in double, rounded once): for error bounds.
void GemmRef(const float* a, size_t lda, size_t m, const PackedWeights& w, double* c, size_t ldc);

}  // namespace iha::kernels
