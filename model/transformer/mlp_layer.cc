#include "model/transformer/mlp_layer.h"

#include <fmt/format.h>

#include "common/status_macros.h"
#include "model/activation.h"

namespace iha::model {

absl::StatusOr<MlpLayer> MlpLayer::Make(const checkpoint::ModelConfig& config, int64_t layer, const Packer& packer) {
  MlpLayer self;
  self.hidden_ = static_cast<size_t>(config.hidden_size);
  self.intermediate_ = static_cast<size_t>(config.intermediate_size);
  self.gated_ = config.mlp == checkpoint::MlpKind::kGated;
  self.activation_ = ActivationOf(config.activation);
  const std::string prefix = fmt::format("model.layers.{}.mlp.", layer);
  std::vector<LinearPart> in;
  if (self.gated_) in.push_back({prefix + "gate_proj", config.intermediate_size, config.mlp_bias});
  in.push_back({prefix + "up_proj", config.intermediate_size, config.mlp_bias});
  IHA_ASSIGN_OR_RETURN(self.in_, packer.MakeLinear(in, config.hidden_size));
  const LinearPart down[] = {{prefix + "down_proj", config.hidden_size, config.mlp_bias}};
  IHA_ASSIGN_OR_RETURN(self.down_, packer.MakeLinear(down, config.intermediate_size));
  return self;
}

OpWork MlpLayer::Work(size_t tokens) const {
  OpWork work = WorkOf(in_, tokens);
  return work += WorkOf(down_, tokens);
}

void MlpLayer::Forward(size_t tokens, const float* x, float* out, kernels::ParallelFor& parallel) {
  const size_t width = in_.weights.n();
  inner_.resize(tokens * width);
  Apply(in_, x, hidden_, tokens, inner_.data(), width, parallel);
  const kernels::MlpShape shape{.rows = tokens, .n = intermediate_, .ld_gate = width, .ld_up = width, .ld_out = width};
  // The activation is written over the gate (or the plain kind's input).
  kernels::ActivationMul(activation_, shape, inner_.data(), gated_ ? inner_.data() + intermediate_ : nullptr,
                         inner_.data(), parallel);
  Apply(down_, inner_.data(), width, tokens, out, hidden_, parallel);
}

}  // namespace iha::model
