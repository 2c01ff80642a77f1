#include "model/transformer/attention_inputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/status_macros.h"
#include "kernels/knocking/knocking.h"
#include "kernels/rmsnorm/rmsnorm.h"
#include "kernels/rope/rope.h"

namespace iha::model {

using checkpoint::Knocking;
using checkpoint::ModelConfig;

uint32_t WindowOf(const checkpoint::LayerSpec& spec) {
  return spec.window.has_value() ? static_cast<uint32_t>(std::min<int64_t>(spec.window->size, UINT32_MAX)) : 0;
}

kernels::RopePairing PairingOf(const checkpoint::LayerSpec& spec) {
  return spec.rope_pairing == checkpoint::RopePairing::kHalf ? kernels::RopePairing::kHalf
                                                             : kernels::RopePairing::kInterleaved;
}

absl::StatusOr<AttentionInputs> AttentionInputs::Make(const ModelConfig& config, int64_t layer, const Packer& packer) {
  AttentionInputs self;
  self.heads_ = static_cast<size_t>(config.num_heads);
  self.kv_heads_ = static_cast<size_t>(config.num_kv_heads);
  self.d_ = static_cast<size_t>(config.head_dim);
  self.hidden_ = static_cast<size_t>(config.hidden_size);
  self.spec_ = config.layers[static_cast<size_t>(layer)];
  self.norm_eps_ = static_cast<float>(config.rms_norm_eps);
  self.norm_plus_one_ = config.norm_plus_one;
  const std::string prefix = fmt::format("model.layers.{}.self_attn.", layer);
  const int64_t q_rows = config.num_heads * config.head_dim, kv_rows = config.num_kv_heads * config.head_dim;
  const LinearPart qkv[] = {{prefix + "q_proj", q_rows, config.qkv_bias},
                            {prefix + "k_proj", kv_rows, config.qkv_bias},
                            {prefix + "v_proj", kv_rows, config.qkv_bias}};
  IHA_ASSIGN_OR_RETURN(self.qkv_, packer.MakeLinear(qkv, config.hidden_size));
  IHA_RETURN_IF_ERROR(self.LoadKnocking(prefix, packer));
  if (self.spec_.qk_norm == checkpoint::QkNorm::kPreRope || self.spec_.qk_norm == checkpoint::QkNorm::kPreMix) {
    IHA_ASSIGN_OR_RETURN(self.q_norm_, packer.Vector(prefix + "q_norm.weight", config.head_dim));
    IHA_ASSIGN_OR_RETURN(self.k_norm_, packer.Vector(prefix + "k_norm.weight", config.head_dim));
  }
  return self;
}

absl::Status AttentionInputs::LoadKnocking(const std::string& prefix, const Packer& packer) {
  if (spec_.knocking == Knocking::kOff) return absl::OkStatus();
  const std::vector<const char*> names = spec_.knocking == Knocking::kLinear
                                             ? std::vector<const char*>{"q", "k", "v"}
                                             : std::vector<const char*>{"up", "gate", "down"};
  const int64_t shape[] = {static_cast<int64_t>(d_), static_cast<int64_t>(d_)};
  for (const char* name : names) {
    IHA_ASSIGN_OR_RETURN(const std::vector<float> matrix,
                         packer.Tensor(fmt::format("{}knocking.{}", prefix, name), shape));
    knocking_.push_back(kernels::PackKnocking(matrix.data(), d_));
  }
  return absl::OkStatus();
}

OpWork AttentionInputs::ProjectWork(size_t tokens) const {
  OpWork work = WorkOf(qkv_, tokens);
  const size_t first = spec_.knocking == Knocking::kLinear ? heads_ : kv_heads_;  // q's, or up of v
  for (size_t i = 0; i < knocking_.size(); i++) work += WorkOf(knocking_[i], tokens * (i == 0 ? first : kv_heads_));
  return work;
}

void AttentionInputs::Project(size_t tokens, const float* x, kernels::ParallelFor& parallel) {
  tokens_ = tokens;
  rows_.resize(tokens * stride());
  Apply(qkv_, x, hidden_, tokens, rows_.data(), stride(), parallel);
  Knock(parallel);
}

void AttentionInputs::Knock(kernels::ParallelFor& parallel) {
  const kernels::KnockingShape q{.tokens = tokens_, .heads = heads_, .stride = stride()};
  const kernels::KnockingShape kv{.tokens = tokens_, .heads = kv_heads_, .stride = stride()};
  switch (spec_.knocking) {
    case Knocking::kOff:
      return;
    case Knocking::kLinear:
      kernels::KnockLinear(q, knocking_[0], queries(), scratch_, parallel);
      kernels::KnockLinear(kv, knocking_[1], keys(), scratch_, parallel);
      kernels::KnockLinear(kv, knocking_[2], values(), scratch_, parallel);
      return;
    case Knocking::kMlp:
      kernels::KnockMlp(kv, knocking_[0], knocking_[1], knocking_[2], values(), scratch_, parallel);
      return;
  }
}

void AttentionInputs::Norm(kernels::ParallelFor& parallel) {
  if (q_norm_.empty()) return;
  const kernels::RmsNormShape shape{
      .rows = tokens_, .n = d_, .ldx = stride(), .ldy = stride(), .eps = norm_eps_, .weight_plus_one = norm_plus_one_};
  for (size_t head = 0; head < heads_ + kv_heads_; head++) {
    float* at = queries() + head * d_;
    kernels::RmsNorm(shape, at, head < heads_ ? q_norm_.data() : k_norm_.data(), at, parallel);
  }
}

void AttentionInputs::Rotate(std::span<const uint32_t> positions, uint32_t step, RopeTables& ropes,
                             kernels::ParallelFor& parallel) {
  // Queries and keys lie next to each other: one call rotates both.
  const kernels::RopeShape shape{.tokens = tokens_,
                                 .heads = heads_ + kv_heads_,
                                 .token_stride = stride(),
                                 .head_stride = d_,
                                 .rotary_dim = d_,
                                 .pairing = PairingOf(spec_)};
  const RopeTable table = ropes.Rows(spec_.rope, step, std::ranges::max(positions));
  kernels::Rope(shape, queries(), positions.data(), table.cos, table.sin, parallel);
}

}  // namespace iha::model
