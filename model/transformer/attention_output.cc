#include "model/transformer/attention_output.h"

#include <fmt/format.h>

#include "common/status_macros.h"
#include "kernels/gate/gate.h"
#include "kernels/xsa/xsa.h"

namespace iha::model {

absl::StatusOr<AttentionOutput> AttentionOutput::Make(const checkpoint::ModelConfig& config, int64_t layer,
                                                      const Packer& packer, size_t heads, size_t d) {
  AttentionOutput self;
  const checkpoint::LayerSpec& spec = config.layers[static_cast<size_t>(layer)];
  self.heads_ = heads;
  self.d_ = d;
  self.hidden_ = static_cast<size_t>(config.hidden_size);
  self.xsa_ = spec.xsa == checkpoint::Xsa::kOutput;
  self.gate_ = spec.gate;
  const std::string prefix = fmt::format("model.layers.{}.self_attn.", layer);
  if (self.gate_ != checkpoint::Gate::kOff) {
    const size_t rows = self.gate_ == checkpoint::Gate::kHeadwise ? heads : heads * d;
    const LinearPart gate[] = {{prefix + "attn_gate", static_cast<int64_t>(rows), false}};
    IHA_ASSIGN_OR_RETURN(self.gates_, packer.MakeLinear(gate, config.hidden_size));
  }
  const LinearPart o[] = {{prefix + "o_proj", config.hidden_size, config.o_bias}};
  IHA_ASSIGN_OR_RETURN(self.o_, packer.MakeLinear(o, static_cast<int64_t>(heads * d)));
  return self;
}

OpWork AttentionOutput::Work(size_t tokens) const {
  OpWork work = WorkOf(o_, tokens);
  return gate_ == checkpoint::Gate::kOff ? work : work += WorkOf(gates_, tokens);
}

void AttentionOutput::Forward(size_t tokens, const float* x, float* y, AttentionInputs& inputs, float* out,
                              kernels::ParallelFor& parallel) {
  if (xsa_) {
    const kernels::XsaShape shape{.tokens = tokens,
                                  .heads = heads_,
                                  .group = heads_ / inputs.kv_heads(),
                                  .d = d_,
                                  .y_stride = heads_ * d_,
                                  .v_stride = inputs.stride()};
    kernels::Xsa(shape, y, inputs.values(), parallel);
  }
  if (gate_ != checkpoint::Gate::kOff) {
    const size_t gates = gates_.weights.n();
    gate_logits_.resize(tokens * gates);
    Apply(gates_, x, hidden_, tokens, gate_logits_.data(), gates, parallel);
    const kernels::GateShape shape{
        .tokens = tokens, .heads = heads_, .d = d_, .elementwise = gate_ == checkpoint::Gate::kElementwise};
    kernels::Gate(shape, y, gate_logits_.data(), parallel);
  }
  Apply(o_, y, heads_ * d_, tokens, out, hidden_, parallel);
}

}  // namespace iha::model
