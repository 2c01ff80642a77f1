#include "model/step_check.h"

#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::model {
namespace {

absl::Status CheckSegment(const Segment& segment, const ModelInfo& info, int32_t cache_blocks) {
  const int64_t end = segment.start + static_cast<int64_t>(segment.tokens.size());
  if (segment.start < 0 || end > info.context_tokens) {
    return InvalidArgument("positions {}..{} exceed the model's context of {} tokens", segment.start, end - 1,
                           info.context_tokens);
  }
  if (static_cast<int64_t>(segment.blocks.size()) * kKvBlockTokens < end) {
    return InvalidArgument("block table of {} blocks does not cover position {}", segment.blocks.size(), end - 1);
  }
  for (const int32_t block : segment.blocks) {
    if (block < 0 || block >= cache_blocks) {
      return InvalidArgument("block id {}: expected an id below {}", block, cache_blocks);
    }
  }
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
