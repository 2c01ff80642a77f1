#include "model/step_check.h"

#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::model {
namespace {

absl::Status CheckTables(const Segment& segment, int64_t end, const ModelInfo& info, int32_t cache_blocks) {
  const size_t groups = info.kv_windows.size(), entries = segment.blocks.size() / groups;
  if (entries * groups != segment.blocks.size()) {
    return InvalidArgument("{} block ids for {} layer groups; expected as many for each", segment.blocks.size(),
                           groups);
  }
  if (static_cast<int64_t>(entries) * kKvBlockTokens < end) {
    return InvalidArgument("block table of {} blocks does not cover position {}", entries, end - 1);
  }
  for (size_t group = 0; group < groups; group++) {
    const int64_t first = FirstSeen(info.kv_windows[group], segment.start);
    const std::span<const int32_t> table = TableOf(segment, group, groups);
    for (size_t i = 0; i < entries; i++) {
      const bool unseen = static_cast<int64_t>(i + 1) * kKvBlockTokens <= first;
      if (unseen && table[i] == kNoKvBlock) continue;
      if (table[i] < 0 || table[i] >= cache_blocks) {
        return InvalidArgument("block id {}: expected an id below {}", table[i], cache_blocks);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSegment(const Segment& segment, const ModelInfo& info, int32_t cache_blocks) {
  const int64_t end = segment.start + static_cast<int64_t>(segment.tokens.size());
  if (segment.start < 0 || end > info.context_tokens) {
    return InvalidArgument("positions {}..{} exceed the model's context of {} tokens", segment.start, end - 1,
                           info.context_tokens);
  }
  IHA_RETURN_IF_ERROR(CheckTables(segment, end, info, cache_blocks));
  for (size_t i = 0; i < segment.tokens.size(); i++) {
    const int32_t id = segment.tokens[i];
    if (id < 0 || id >= info.vocab_size) {
      return InvalidArgument("token id {} at position {}: expected an id below {}", id,
                             segment.start + static_cast<int64_t>(i), info.vocab_size);
    }
  }
  int32_t previous = -1;
  for (const int32_t row : segment.logit_rows) {
    if (row <= previous || static_cast<size_t>(row) >= segment.tokens.size()) {
      return InvalidArgument("logit row {} after {} of a segment of {} tokens; expected increasing rows", row, previous,
                             segment.tokens.size());
    }
    previous = row;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckReservation(int32_t reserved, int32_t blocks) {
  if (reserved != 0) return Internal("the KV cache is reserved already ({} blocks)", reserved);
  if (blocks <= 0) return InvalidArgument("KV cache of {} blocks; expected at least 1", blocks);
  return absl::OkStatus();
}

absl::Status CheckStep(std::span<const Segment> segments, size_t logits, const ModelInfo& info, int32_t cache_blocks) {
  size_t wanted = 0;
  for (const Segment& segment : segments) {
    IHA_RETURN_IF_ERROR(CheckSegment(segment, info, cache_blocks));
    wanted += segment.logit_rows.size();
  }
  if (logits != wanted * static_cast<size_t>(info.vocab_size)) {
    return InvalidArgument("logits hold {} floats; expected {} rows x {}", logits, wanted, info.vocab_size);
  }
  return absl::OkStatus();
}

}  // namespace iha::model
