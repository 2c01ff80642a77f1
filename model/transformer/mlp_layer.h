// mlp_layer.h: the feed-forward half of a block: down(act(gate) * up), or down(act(up)) for the plain kind.
//
// Owns its packed weights and scratch. Thread: the backend's.
#pragma once

#include "absl/status/statusor.h"
#include "kernels/mlp/mlp.h"
#include "kernels/support/parallel_for.h"
#include "model/checkpoint/config.h"
#include "model/transformer/packing.h"

namespace iha::model {

class MlpLayer {
 public:
  static absl::StatusOr<MlpLayer> Make(const checkpoint::ModelConfig& config, int64_t layer, const Packer& packer);

  // Of Forward, its matrix products.
  OpWork Work(size_t tokens) const;
  // x, out: [tokens, hidden]; out is written.
  void Forward(size_t tokens, const float* x, float* out, kernels::ParallelFor& parallel);

 private:
  MlpLayer() = default;
  size_t hidden_ = 0;
  size_t intermediate_ = 0;
  bool gated_ = true;
  kernels::Activation activation_ = kernels::Activation::kSilu;
  Linear in_;  // gate then up, or up alone
  Linear down_;
  std::vector<float> inner_;
};

}  // namespace iha::model
