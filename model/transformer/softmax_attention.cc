#include "model/transformer/softmax_attention.h"

#include <fmt/format.h>

#include "common/status_macros.h"
#include "kernels/rmsnorm/rmsnorm.h"
#include "kernels/rope/rope.h"

namespace iha::model {

using checkpoint::LayerSpec;
using checkpoint::ModelConfig;

SoftmaxAttention::SoftmaxAttention(const ModelConfig& config, int64_t layer, kernels::StorageType kv_type,
                                   RopeTables& ropes)
    : heads_(static_cast<size_t>(config.num_heads)),
      kv_heads_(static_cast<size_t>(config.num_kv_heads)),
      d_(static_cast<size_t>(config.head_dim)),
      hidden_(static_cast<size_t>(config.hidden_size)),
      spec_(config.layers[static_cast<size_t>(layer)]),
      scale_(static_cast<float>(config.attention_scale)),
      norm_eps_(static_cast<float>(config.rms_norm_eps)),
      norm_plus_one_(config.norm_plus_one),
      layout_{.type = kv_type, .d = d_, .d_v = d_},
      head_bytes_((layout_.bytes() + 63) / 64 * 64),
      ropes_(ropes) {}

absl::StatusOr<std::unique_ptr<AttentionLayer>> SoftmaxAttention::Make(const ModelConfig& config, int64_t layer,
                                                                       kernels::StorageType kv_type,
                                                                       const Packer& packer, RopeTables& ropes) {
  std::unique_ptr<SoftmaxAttention> self(new SoftmaxAttention(config, layer, kv_type, ropes));
  const std::string prefix = fmt::format("model.layers.{}.self_attn.", layer);
  const int64_t q_rows = config.num_heads * config.head_dim;
  const int64_t kv_rows = config.num_kv_heads * config.head_dim;
  const LinearPart qkv[] = {{prefix + "q_proj", q_rows, config.qkv_bias},
                            {prefix + "k_proj", kv_rows, config.qkv_bias},
                            {prefix + "v_proj", kv_rows, config.qkv_bias}};
  IHA_ASSIGN_OR_RETURN(self->qkv_, packer.MakeLinear(qkv, config.hidden_size));
  const LinearPart o[] = {{prefix + "o_proj", config.hidden_size, config.o_bias}};
  IHA_ASSIGN_OR_RETURN(self->o_, packer.MakeLinear(o, q_rows));
  if (self->spec_.qk_norm == checkpoint::QkNorm::kPreRope) {
    IHA_ASSIGN_OR_RETURN(self->q_norm_, packer.Vector(prefix + "q_norm.weight", config.head_dim));
    IHA_ASSIGN_OR_RETURN(self->k_norm_, packer.Vector(prefix + "k_norm.weight", config.head_dim));
  }
  return self;
}

void SoftmaxAttention::Forward(const StepTokens& tokens, size_t cache_offset, const float* x, float* out,
                               kernels::ParallelFor& parallel) {
  projected_.resize(tokens.count() * qkv_stride());
  attended_.resize(tokens.count() * heads_ * d_);
  Apply(qkv_, x, hidden_, tokens.count(), projected_.data(), qkv_stride(), parallel);
  NormHeads(tokens.count(), parallel);
  Rotate(tokens, parallel);
  Append(tokens, cache_offset, parallel);
  Attend(tokens, cache_offset, parallel);
  Apply(o_, attended_.data(), heads_ * d_, tokens.count(), out, hidden_, parallel);
}

void SoftmaxAttention::NormHeads(size_t tokens, kernels::ParallelFor& parallel) {
  if (q_norm_.empty()) return;
  const kernels::RmsNormShape shape{.rows = tokens,
                                    .n = d_,
                                    .ldx = qkv_stride(),
                                    .ldy = qkv_stride(),
                                    .eps = norm_eps_,
                                    .weight_plus_one = norm_plus_one_};
  for (size_t head = 0; head < heads_ + kv_heads_; head++) {
    float* at = projected_.data() + head * d_;
    kernels::RmsNorm(shape, at, head < heads_ ? q_norm_.data() : k_norm_.data(), at, parallel);
  }
}

void SoftmaxAttention::Rotate(const StepTokens& tokens, kernels::ParallelFor& parallel) {
  // Queries and keys lie next to each other: one call rotates both.
  const kernels::RopeShape shape{.tokens = tokens.count(),
                                 .heads = heads_ + kv_heads_,
                                 .token_stride = qkv_stride(),
                                 .head_stride = d_,
                                 .rotary_dim = d_,
                                 .pairing = spec_.rope_pairing == checkpoint::RopePairing::kHalf
                                                ? kernels::RopePairing::kHalf
                                                : kernels::RopePairing::kInterleaved};
  kernels::Rope(shape, projected_.data(), tokens.positions.data(), ropes_.cos(spec_.rope), ropes_.sin(spec_.rope),
                parallel);
}

void SoftmaxAttention::Append(const StepTokens& tokens, size_t cache_offset, kernels::ParallelFor& parallel) {
  parallel.Run(tokens.count(), [&](size_t token, int) {
    const float* k = projected_.data() + token * qkv_stride() + heads_ * d_;
    const float* v = k + kv_heads_ * d_;
    uint8_t* slice = tokens.block_of_token[token] + cache_offset;
    for (size_t head = 0; head < kv_heads_; head++) {
      kernels::AppendKv(layout_, slice + head * head_bytes_, tokens.positions[token] % kKvBlockTokens, k + head * d_,
                        v + head * d_);
    }
  });
}

void SoftmaxAttention::Attend(const StepTokens& tokens, size_t cache_offset, kernels::ParallelFor& parallel) {
  const size_t group = heads_ / kv_heads_;
  const uint32_t window = spec_.window.has_value() ? static_cast<uint32_t>(spec_.window->size) : 0;
  rows_.resize(tokens.count() * heads_);
  std::vector<kernels::AttentionGroup> groups;
  groups.reserve(tokens.segments.size() * kv_heads_);
  size_t first_token = 0;
  size_t next_row = 0;
  for (size_t s = 0; s < tokens.segments.size(); s++) {
    const size_t count = tokens.segments[s].tokens.size();
    for (size_t kv_head = 0; kv_head < kv_heads_; kv_head++) {
      const size_t first_row = next_row;
      // Position-major: neighbours see the same keys up to one, so they share passes over the cache.
      for (size_t token = first_token; token < first_token + count; token++) {
        const uint32_t position = tokens.positions[token];
        for (size_t head = kv_head * group; head < (kv_head + 1) * group; head++) {
          rows_[next_row++] = {.q = projected_.data() + token * qkv_stride() + head * d_,
                               .out = attended_.data() + (token * heads_ + head) * d_,
                               .first = kernels::FirstVisible(position, window),
                               .last = position};
        }
      }
      groups.push_back({.blocks = tokens.tables[s].data(),
                        .head_offset = cache_offset + kv_head * head_bytes_,
                        .rows = std::span(rows_).subspan(first_row, next_row - first_row)});
    }
    first_token += count;
  }
  kernels::Attention(layout_, scale_, groups, parallel);
}

}  // namespace iha::model
