#include "worker/engine/executor.h"

#include <algorithm>
#include <limits>
#include <new>
#include <numeric>
#include <utility>

#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::engine {

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(std::unique_ptr<model::Backend> backend, int64_t kv_bytes) {
  const model::ModelInfo& info = backend->info();
  if (info.kv_block_bytes <= 0) return Internal("the backend says that a KV block has {} bytes", info.kv_block_bytes);
  const int64_t groups = static_cast<int64_t>(info.kv_windows.size()), spare = info.spare_blocks;
  const int64_t blocks = std::min<int64_t>(kv_bytes / info.kv_block_bytes, std::numeric_limits<int32_t>::max()) - spare;
  if (blocks < groups) {
    return ResourceExhausted("KV cache: a block of {} tokens in {} layer group(s){} needs {} bytes, the budget has {}",
                             model::kKvBlockTokens, groups, spare == 0 ? "" : fmt::format(", {} to spare,", spare),
                             (groups + spare) * info.kv_block_bytes, kv_bytes);
  }
  IHA_RETURN_IF_ERROR(backend->ReserveCache(static_cast<int32_t>(blocks)));
  return std::unique_ptr<Executor>(new Executor(std::move(backend), static_cast<int32_t>(blocks)));
}

absl::Status Executor::Execute(const BatchPlan& plan, std::span<const model::RowDraw> draws) {
  for (const BlockCopy& copy : plan.copies) IHA_RETURN_IF_ERROR(backend_->CopyBlock(copy.from, copy.to));
  std::vector<model::Segment> segments;
  segments.reserve(plan.segments.size());
  for (const PlannedSegment& s : plan.segments) segments.push_back({s.tokens, s.start, s.blocks, s.logit_rows});
  tokens_.assign(draws.size(), model::kNoToken);
  at_.resize(draws.size());
  if (drawing_ != nullptr) return Draw(segments, draws);
  std::iota(at_.begin(), at_.end(), size_t{0});
  IHA_ASSIGN_OR_RETURN(const std::span<float> logits, Rows(draws.size()));
  return backend_->Forward(segments, logits, nullptr);
}

// Rows without a token come over; the backend knows them until the next step.
absl::Status Executor::Draw(std::span<const model::Segment> segments, std::span<const model::RowDraw> draws) {
  IHA_RETURN_IF_ERROR(drawing_->ForwardAndDraw(segments, draws, tokens_));
  std::vector<int32_t> rows;
  for (size_t i = 0; i < tokens_.size(); i++) {
    at_[i] = rows.size();
    if (tokens_[i] == model::kNoToken) rows.push_back(static_cast<int32_t>(i));
  }
  if (rows.empty()) return absl::OkStatus();
  IHA_ASSIGN_OR_RETURN(const std::span<float> logits, Rows(rows.size()));
  return drawing_->ReadLogits(rows, logits);
}

absl::StatusOr<std::span<float>> Executor::Rows(size_t rows) {
  const size_t floats = rows * static_cast<size_t>(info().vocab_size);
  if (logits_.size() < floats) {
    try {
      logits_.resize(floats);
    } catch (const std::bad_alloc&) {
      return ResourceExhausted("logits of {} positions, {} MiB: out of memory", rows, floats >> 18);
    }
  }
  return std::span(logits_).first(floats);
}

std::span<const float> Executor::Logits(int64_t row) const {
  const size_t vocab = static_cast<size_t>(info().vocab_size);
  return std::span(logits_).subspan(at_[static_cast<size_t>(row)] * vocab, vocab);
}

}  // namespace iha::engine
