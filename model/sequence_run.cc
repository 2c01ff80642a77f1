#include "model/sequence_run.h"

#include <algorithm>
#include <numeric>

#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::model {
namespace {

size_t BlocksOf(const ModelInfo& info, const std::vector<int32_t>& sequence) {
  return (sequence.size() / kKvBlockTokens + 1) * info.kv_windows.size();
}

void AppendTrace(Trace& whole, const Trace& step) {
  whole.attn_out.resize(step.attn_out.size());
  for (size_t layer = 0; layer < step.attn_out.size(); layer++) {
    const std::vector<float>& rows = step.attn_out[layer];
    whole.attn_out[layer].insert(whole.attn_out[layer].end(), rows.begin(), rows.end());
  }
}

// One step of every sequence that still has tokens at `start`.
struct Step {
  std::vector<Segment> segments;
  std::vector<size_t> owners;  // segment -> sequence
  size_t tokens = 0;
};

}  // namespace

int32_t BlocksFor(const ModelInfo& info, std::span<const std::vector<int32_t>> sequences) {
  size_t blocks = 0;
  for (const auto& sequence : sequences) blocks += BlocksOf(info, sequence);
  return static_cast<int32_t>(blocks);
}

absl::Status RunSequences(Backend& backend, std::span<const std::vector<int32_t>> sequences, size_t chunk,
                          const LogitSink& sink, Trace* trace) {
  if (trace != nullptr && sequences.size() != 1) {
    return InvalidArgument("a trace of {} sequences; expected 1", sequences.size());
  }
  const size_t vocab = static_cast<size_t>(backend.info().vocab_size);
  size_t longest = 0;
  std::vector<std::vector<int32_t>> tables;
  int32_t next_block = 0;
  for (const auto& sequence : sequences) {
    longest = std::max(longest, sequence.size());
    tables.emplace_back(BlocksOf(backend.info(), sequence));
    std::iota(tables.back().begin(), tables.back().end(), next_block);
    next_block += static_cast<int32_t>(tables.back().size());
  }
  if (chunk == 0) chunk = std::max<size_t>(longest, 1);
  std::vector<int32_t> rows(std::min(chunk, longest));
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<float> logits;
  for (size_t start = 0; start < longest; start += chunk) {
    Step step;
    for (size_t s = 0; s < sequences.size(); s++) {
      if (start >= sequences[s].size()) continue;
      const size_t count = std::min(chunk, sequences[s].size() - start);
      step.segments.push_back({.tokens = std::span(sequences[s]).subspan(start, count),
                               .start = static_cast<int64_t>(start),
                               .blocks = tables[s],
                               .logit_rows = std::span(rows).first(count)});
      step.owners.push_back(s);
      step.tokens += count;
    }
    logits.resize(step.tokens * vocab);
    Trace step_trace;
    IHA_RETURN_IF_ERROR(backend.Forward(step.segments, logits, trace == nullptr ? nullptr : &step_trace));
    if (trace != nullptr) AppendTrace(*trace, step_trace);
    std::span<const float> left = logits;
    for (size_t i = 0; i < step.segments.size(); i++) {
      const size_t size = step.segments[i].tokens.size() * vocab;
      IHA_RETURN_IF_ERROR(sink(step.owners[i], left.first(size)));
      left = left.subspan(size);
    }
  }
  return absl::OkStatus();
}

}  // namespace iha::model
