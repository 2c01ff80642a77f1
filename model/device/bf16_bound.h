// bf16_bound.h: how far a model in bf16 (weights, activations, cache; fp32 sums) may be from the same model in exact
// arithmetic: the errors of docs/contracts/numerics.md, "Errors of bf16", layer by layer.
//
// Relative to the root mean square of the values in question; kBf16Deviations of them are the bound of a largest error.
// From config and weights, for any engine that rounds where the kernels for the device round. Thread: any. Errors:
// those of Checkpoint::ExpectTensor.
#pragma once

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "model/checkpoint/checkpoint.h"

namespace iha::model {

// Bound of a largest error, in standard deviations.
inline constexpr double kBf16Deviations = 6;

struct Bf16Errors {
  std::vector<double> attn_out;  // of each layer: output of o_proj
  double logits = 0;
};
// score_variances: of each layer, of the scores of a row over its keys; talking heads: of the mixed ones, times what
// the mix of the weights makes of their errors.
Bf16Errors Bf16ErrorsOf(const checkpoint::ModelConfig& config, std::span<const double> score_variances);

// Those of inputs of random direction: scale^2 |q|^2 |k|^2 / d, the squared lengths as weights and norms make them.
absl::StatusOr<std::vector<double>> ScoreVariances(const checkpoint::Checkpoint& checkpoint);

// kBf16Deviations * relative * root mean square of `expected`.
double Bf16Bound(double relative, std::span<const double> expected);

}  // namespace iha::model
