// attention_output.h: how every kind of attention ends: XSA's output stage, the gate, o_proj.
//
// Thread: the backend's. Errors of Make: those of Checkpoint::ExpectTensor. Source: checkpoints.md, modifiers.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/support/parallel_for.h"
#include "model/checkpoint/config.h"
#include "model/transformer/attention_inputs.h"
#include "model/transformer/packing.h"

namespace iha::model {

class AttentionOutput {
 public:
  // `heads` outputs of `d` floats a token (diff: H / 2 of 2 head_dim; diff_v2: H / 2; else H of head_dim).
  static absl::StatusOr<AttentionOutput> Make(const checkpoint::ModelConfig& config, int64_t layer,
                                              const Packer& packer, size_t heads, size_t d);

  // Of Forward, its matrix products.
  OpWork Work(size_t tokens) const;
  // x: the layer's input [tokens, hidden]; y: [tokens][heads][d], overwritten; inputs: of this step, for its base
  // values. out: [tokens, hidden], o_proj with its bias.
  void Forward(size_t tokens, const float* x, float* y, AttentionInputs& inputs, float* out,
               kernels::ParallelFor& parallel);

 private:
  AttentionOutput() = default;

  size_t heads_ = 0, d_ = 0, hidden_ = 0;
  bool xsa_ = false;
  checkpoint::Gate gate_ = checkpoint::Gate::kOff;
  Linear gates_, o_;
  std::vector<float> gate_logits_;  // of one step
};

}  // namespace iha::model
