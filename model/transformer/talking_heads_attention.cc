#include "model/transformer/talking_heads_attention.h"

#include <fmt/format.h>

#include "common/status_macros.h"
#include "model/transformer/attention_work.h"
#include "model/transformer/kv_append.h"

namespace iha::model {

using checkpoint::ModelConfig;

absl::StatusOr<std::unique_ptr<AttentionLayer>> TalkingHeadsAttention::Make(const ModelConfig& config, int64_t layer,
                                                                            const CacheOptions& cache,
                                                                            const Packer& packer, RopeTables& ropes) {
  const checkpoint::LayerSpec& spec = config.layers[static_cast<size_t>(layer)];
  IHA_ASSIGN_OR_RETURN(AttentionInputs inputs, AttentionInputs::Make(config, layer, packer));
  const std::string prefix = fmt::format("model.layers.{}.self_attn.talking_heads.", layer);
  const int64_t mix[] = {config.num_heads, config.num_heads};
  IHA_ASSIGN_OR_RETURN(std::vector<float> pre, packer.Tensor(prefix + "pre", mix));
  IHA_ASSIGN_OR_RETURN(std::vector<float> post, packer.Tensor(prefix + "post", mix));
  IHA_ASSIGN_OR_RETURN(AttentionOutput output,
                       AttentionOutput::Make(config, layer, packer, inputs.heads(), inputs.d()));
  const kernels::TalkingHeadsShape shape{.layout = checkpoint::KvLayoutOf(config, spec, cache.type),
                                         .heads = inputs.heads(),
                                         .kv_heads = inputs.kv_heads(),
                                         .scale = static_cast<float>(config.attention_scale),
                                         .window = WindowOf(spec)};
  return std::unique_ptr<AttentionLayer>(
      new TalkingHeadsAttention(std::move(inputs), std::move(output), shape, std::move(pre), std::move(post), ropes));
}

OpWork TalkingHeadsAttention::AttentionWork(const StepTokens& tokens) const {
  std::vector<kernels::AttentionRow> rows;
  for (const uint32_t position : tokens.positions) {
    rows.push_back({.first = kernels::FirstVisible(position, shape_.window), .last = position});
  }
  std::vector<kernels::AttentionGroup> groups;
  size_t next = 0;
  for (size_t s = 0; s < tokens.segments.size(); s++) {
    const size_t count = tokens.segments[s].tokens.size();
    groups.push_back({.blocks = tokens.tables[s].data(), .rows = std::span(rows).subspan(next, count)});
    next += count;
  }
  const SeenKeys seen = SeenByAHead(groups, 1);
  const double heads = static_cast<double>(shape_.heads),
               numbers = static_cast<double>(shape_.layout.d + shape_.layout.d_v);
  // Per pair and head: q.k, one row of each mix, the weighted sum.
  return {.flops = 2 * seen.pairs * heads * (numbers + 2 * heads),
          .bytes = seen.keys * static_cast<double>(shape_.kv_heads) * numbers *
                   static_cast<double>(kernels::StorageBytes(shape_.layout.type))};
}

void TalkingHeadsAttention::Forward(const StepTokens& tokens, size_t cache_offset, const float* x, float* out,
                                    kernels::ParallelFor& parallel) {
  const size_t n = tokens.count(), row = inputs_.heads() * inputs_.d();
  OpProfile& profile = *tokens.profile;
  y_.resize(n * row);
  profile.Time(Op::kQkv, inputs_.ProjectWork(n), [&] { inputs_.Project(n, x, parallel); });
  profile.Time(Op::kPositions, {}, [&] {
    inputs_.Norm(parallel);
    inputs_.Rotate(tokens.positions, 1, ropes_, parallel);
    AppendKeysAndValues(shape_.layout, tokens, cache_offset, inputs_, parallel);
  });
  std::vector<kernels::TalkingHeadsTokens> sequences;
  sequences.reserve(tokens.segments.size());
  size_t first = 0;
  for (size_t s = 0; s < tokens.segments.size(); s++) {
    const size_t count = tokens.segments[s].tokens.size();
    sequences.push_back({.blocks = tokens.tables[s].data(),
                         .offset = cache_offset,
                         .positions = std::span(tokens.positions).subspan(first, count),
                         .q = inputs_.queries(first),
                         .q_stride = inputs_.stride(),
                         .out = y_.data() + first * row});
    first += count;
  }
  profile.Time(
      Op::kAttention, [&] { return AttentionWork(tokens); },
      [&] { kernels::TalkingHeads(shape_, sequences, parallel); });
  profile.Time(Op::kAttentionOutput, output_.Work(n),
               [&] { output_.Forward(n, x, y_.data(), inputs_, out, parallel); });
}

}  // namespace iha::model
