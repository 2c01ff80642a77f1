#include "model/device/decode_steps.h"

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "common/status_macros.h"

namespace iha::model {
namespace {

// More are not in use at a time; a run whose sizes keep changing records the newest ones again.
constexpr size_t kMostSizes = 64;
constexpr int32_t kSpareToken[] = {0};
constexpr int32_t kOnlyRow[] = {0};

}  // namespace

DecodeSteps::DecodeSteps(Model model)
    : model_(std::move(model)), spare_blocks_(model_.cache->windows().size(), model_.spare_block) {}

bool DecodeSteps::Fits(std::span<const Segment> segments) {
  return !segments.empty() && std::ranges::all_of(segments, [](const Segment& segment) {
    return segment.tokens.size() == 1 && segment.logit_rows.size() == 1;
  });
}

absl::StatusOr<const DeviceArray<float>*> DecodeSteps::Run(std::span<const Segment> segments) {
  size_t entries = 0;
  for (const Segment& segment : segments) entries = std::max(entries, segment.blocks.size() / spare_blocks_.size());
  const auto longest = static_cast<uint32_t>((model_.context_tokens + kKvBlockTokens - 1) / kKvBlockTokens);
  const uint32_t blocks = DecodeBlocks(static_cast<uint32_t>(entries), longest);
  const uint32_t sequences = DecodeSequences(static_cast<uint32_t>(segments.size()));
  std::vector<Segment> filled(segments.begin(), segments.end());
  for (int64_t position = 0; filled.size() < sequences; position++) {
    filled.push_back({.tokens = kSpareToken, .start = position, .blocks = spare_blocks_, .logit_rows = kOnlyRow});
  }
  if (logits_.size() < size_t{sequences} * model_.n) {
    logits_ = {};  // first, or both would need room
    IHA_ASSIGN_OR_RETURN(logits_, DeviceArray<float>::Make(*model_.runtime, size_t{sequences} * model_.n, "logits"));
    logits_moves_++;
  }
  const std::pair key(sequences, blocks);
  if (sizes_.size() == kMostSizes && !sizes_.contains(key)) sizes_.clear();
  const auto entry = sizes_.try_emplace(key);
  const auto at = entry.first;
  const bool fresh = entry.second;
  absl::Cleanup half_made = [&] { sizes_.erase(at); };
  IHA_RETURN_IF_ERROR(fresh ? First(at->second, filled, blocks) : Again(at->second, filled, blocks));
  std::move(half_made).Cancel();
  return &logits_;
}

// To the last position that the page tables have room for, so that tables seldom take new places.
absl::Status DecodeSteps::ExtendRopes(uint32_t blocks) {
  const int64_t positions = std::min(int64_t{blocks} * kKvBlockTokens, model_.context_tokens);
  return model_.ropes->Extend(model_.last_rope_row(static_cast<uint32_t>(positions - 1)));
}

absl::Status DecodeSteps::First(Size& size, std::span<const Segment> segments, uint32_t blocks) {
  IHA_RETURN_IF_ERROR(ExtendRopes(blocks));
  IHA_ASSIGN_OR_RETURN(size.step, DeviceStep::Make(*model_.runtime, *model_.cache, segments, blocks));
  return model_.launches(*size.step, logits_);
}

absl::Status DecodeSteps::Again(Size& size, std::span<const Segment> segments, uint32_t blocks) {
  IHA_RETURN_IF_ERROR(ExtendRopes(blocks));
  IHA_RETURN_IF_ERROR(size.step->Refill(segments));
  if (size.moves != Moves()) size.graph = nullptr;
  if (size.graph == nullptr && !size.cannot_record) IHA_RETURN_IF_ERROR(Record(size));
  if (size.graph == nullptr) return model_.launches(*size.step, logits_);
  return model_.runtime->Replay(*size.graph);
}

absl::Status DecodeSteps::Record(Size& size) {
  IHA_RETURN_IF_ERROR(model_.runtime->BeginRecording());
  // A launch may also throw, for want of the host's memory: the runtime records no further then, either.
  absl::Cleanup end = [this] { model_.runtime->EndRecording().IgnoreError(); };
  absl::Status status = model_.launches(*size.step, logits_);
  std::move(end).Cancel();
  absl::StatusOr<std::unique_ptr<DeviceGraph>> graph = model_.runtime->EndRecording();
  if (status.ok()) status = graph.status();
  if (status.code() == absl::StatusCode::kResourceExhausted) {
    size.cannot_record = true;
    return absl::OkStatus();
  }
  IHA_RETURN_IF_ERROR(status);
  size.graph = *std::move(graph);
  size.moves = Moves();
  return absl::OkStatus();
}

}  // namespace iha::model
