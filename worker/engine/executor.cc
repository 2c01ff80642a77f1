#include "worker/engine/executor.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::engine {

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(std::unique_ptr<model::Backend> backend, int64_t kv_bytes) {
  const model::ModelInfo& info = backend->info();
  if (info.kv_block_bytes <= 0) return Internal("the backend says that a KV block has {} bytes", info.kv_block_bytes);
  const int64_t blocks = std::min<int64_t>(kv_bytes / info.kv_block_bytes, std::numeric_limits<int32_t>::max());
  const int64_t groups = static_cast<int64_t>(info.kv_windows.size());
  if (blocks < groups) {
    return ResourceExhausted("KV cache: a block of {} tokens in {} layer group(s) needs {} bytes, the budget has {}",
                             model::kKvBlockTokens, groups, groups * info.kv_block_bytes, kv_bytes);
  }
  IHA_RETURN_IF_ERROR(backend->ReserveCache(static_cast<int32_t>(blocks)));
  return std::unique_ptr<Executor>(new Executor(std::move(backend), static_cast<int32_t>(blocks)));
}

absl::Status Executor::Execute(const BatchPlan& plan) {
  for (const BlockCopy& copy : plan.copies) IHA_RETURN_IF_ERROR(backend_->CopyBlock(copy.from, copy.to));
  std::vector<model::Segment> segments;
  segments.reserve(plan.segments.size());
  for (const PlannedSegment& s : plan.segments) segments.push_back({s.tokens, s.start, s.blocks, s.logit_rows});
  const size_t floats = static_cast<size_t>(plan.logit_rows) * static_cast<size_t>(info().vocab_size);
  if (logits_.size() < floats) {
    try {
      logits_.resize(floats);
    } catch (const std::bad_alloc&) {
      return ResourceExhausted("logits of {} positions, {} MiB: out of memory", plan.logit_rows, floats >> 18);
    }
  }
  return backend_->Forward(segments, std::span(logits_).first(floats), nullptr);
}

std::span<const float> Executor::Logits(int64_t row) const {
  const size_t vocab = static_cast<size_t>(info().vocab_size);
  return std::span(logits_).subspan(static_cast<size_t>(row) * vocab, vocab);
}

}  // namespace iha::engine
