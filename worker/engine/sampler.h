// sampler.h: one token from one row of logits. The rules whose bits are part of a result (ENG-8).
//
//   1. ids that may not be drawn are taken out; what is left is ordered by logit, largest first, ties by lowest id
//   2. temperature 0: the first of that order. Else weights w = exp((x - max) / T), T in fp32 (model/logits.h)
//   3. top_k > 0: the first top_k of the order stay
//   4. top_p < 1: of those, the shortest prefix of the order whose weights, added in that order in double, reach
//      top_p * (their total) stays
//   5. draw: the total W of what stays, and the first id, in increasing id order, whose running sum exceeds u * W.
//      Totals and running sums are in double over blocks of 256 consecutive ids, block by block
// An id of weight zero (probability below e^-87 of the best) is never drawn. No libm, no allocation after the first
// rows; a Sampler belongs to one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "model/token_drawing.h"
#include "worker/engine/request.h"

namespace iha::engine {

using model::DrawRules;

class Sampler {
 public:
  // `uniform` in [0, 1): not read at temperature 0. DataLoss: a NaN or +infinity among the logits, or nothing
  // finite; InvalidArgument: the rules leave nothing that can be drawn.
  absl::StatusOr<int32_t> Draw(std::span<const float> logits, const DrawRules& rules, double uniform);

  // Log-probability of `id`, and of the `top` best ids. DataLoss on NaN or infinite logits.
  absl::StatusOr<TokenScore> Score(std::span<const float> logits, int32_t id, int32_t top);

 private:
  // Applies rule 1 into masked_ if there is anything to take out; the row to draw from.
  std::span<const float> Mask(std::span<const float> logits, const DrawRules& rules);
  void KeepTopK(std::span<const float> row, int32_t top_k);
  void KeepTopP(std::span<const float> row, double top_p);
  int32_t PickByWeight(double uniform);
  double SumBlocks();

  std::vector<float> masked_;
  std::vector<float> weights_;  // zero = not kept
  std::vector<double> block_sums_;
  std::vector<int32_t> order_;
};

}  // namespace iha::engine
