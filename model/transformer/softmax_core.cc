#include "model/transformer/softmax_core.h"

#include "model/transformer/attention_work.h"
#include "model/transformer/kv_append.h"

namespace iha::model {

void SoftmaxCore::Forward(const StepTokens& tokens, size_t cache_offset, AttentionInputs& inputs, float* y,
                          kernels::ParallelFor& parallel) {
  const kernels::KvLayout& layout = shape_.layout;
  tokens.profile->Time(Op::kPositions, {},
                       [&] { AppendKeysAndValues(layout, tokens, cache_offset, inputs, parallel); });
  const size_t group = shape_.heads / shape_.key_heads;
  rows_.resize(tokens.count() * shape_.heads);
  std::vector<kernels::AttentionGroup> groups;
  groups.reserve(tokens.segments.size() * shape_.key_heads);
  size_t first_token = 0;
  size_t next_row = 0;
  for (size_t s = 0; s < tokens.segments.size(); s++) {
    const size_t count = tokens.segments[s].tokens.size();
    for (size_t key_head = 0; key_head < shape_.key_heads; key_head++) {
      const size_t first_row = next_row;
      // Position-major: neighbours see the same keys up to one, so they share passes over the cache.
      for (size_t token = first_token; token < first_token + count; token++) {
        const uint32_t position = tokens.positions[token];
        for (size_t head = key_head * group; head < (key_head + 1) * group; head++) {
          rows_[next_row++] = {.q = inputs.queries(token) + head * layout.d,
                               .out = y + (token * shape_.heads + head) * layout.d_v,
                               .first = kernels::FirstVisible(position, shape_.window),
                               .last = position};
        }
      }
      groups.push_back({.blocks = tokens.tables[s].data(),
                        .head_offset = cache_offset + key_head / layout.keys * layout.bytes(),
                        .rows = std::span(rows_).subspan(first_row, next_row - first_row),
                        .key = key_head % layout.keys});
    }
    first_token += count;
  }
  tokens.profile->Time(
      Op::kAttention, [&] { return WorkOf(layout, groups, shape_.key_heads); },
      [&] { kernels::Attention(layout, shape_.scale, groups, parallel); });
}

}  // namespace iha::model
