// packing.h: from stored tensors to what the kernels read: packed matrices, fp32 vectors.
//
// Weights stored in 16 bits stay so. F32 ones are packed in the smallest form that keeps every bit: 16 bits where all
// values fit (narrowing.h), affine blocks where they came out of a quantised file (kernels/matmul/affine_blocks.h),
// fp32 otherwise. The kernels widen exactly, so the form changes no bit of a result. Reads the mapped file; the views
// are not needed afterwards. Errors: those of Checkpoint::ExpectTensor.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/matmul/matmul.h"
#include "kernels/support/parallel_for.h"
#include "model/checkpoint/checkpoint.h"
#include "model/op_profile.h"

namespace iha::model {

// A linear layer y = x W^T + b; bias empty when there is none.
struct Linear {
  kernels::PackedWeights weights;
  std::vector<float> bias;
};

// One tensor [rows, columns] that becomes rows of a Linear.
struct LinearPart {
  std::string name;  // without ".weight" / ".bias"
  int64_t rows = 0;
  bool bias = false;
};

class Packer {
 public:
  Packer(const checkpoint::Checkpoint& checkpoint, kernels::ParallelFor& parallel)
      : checkpoint_(checkpoint), parallel_(parallel) {}

  // The parts' rows one after another; a bias vector if any part has one (zeros for the others).
  absl::StatusOr<Linear> MakeLinear(std::span<const LinearPart> parts, int64_t columns) const;
  // Tensor `name` of this shape as fp32, row-major.
  absl::StatusOr<std::vector<float>> Tensor(const std::string& name, std::span<const int64_t> shape) const;
  // Of shape [n].
  absl::StatusOr<std::vector<float>> Vector(const std::string& name, int64_t n) const;

 private:
  kernels::PackedWeights PackExactly(std::span<const checkpoint::TensorView> views, size_t columns) const;
  // nullopt for affine blocks only.
  std::optional<kernels::PackedWeights> PackAs(kernels::WeightForm form, std::span<const checkpoint::TensorView> views,
                                               size_t columns) const;
  bool PackPart(const checkpoint::TensorView& view, kernels::StorageType type, size_t row,
                kernels::PackedWeights* weights) const;
  const checkpoint::Checkpoint& checkpoint_;
  kernels::ParallelFor& parallel_;
  std::unique_ptr<kernels::WeightArena> arena_ = std::make_unique<kernels::WeightArena>();
};

// Of the product of `rows` rows.
OpWork WorkOf(const kernels::PackedWeights& weights, size_t rows);
inline OpWork WorkOf(const Linear& linear, size_t rows) { return WorkOf(linear.weights, rows); }
// y[row] = x[row] W^T + b for `rows` rows.
void Apply(const Linear& linear, const float* x, size_t ldx, size_t rows, float* y, size_t ldy,
           kernels::ParallelFor& parallel);

}  // namespace iha::model
