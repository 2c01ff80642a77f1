#include "model/fake_model.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::model {
namespace {

constexpr int64_t kBlock = kKvBlockTokens;
constexpr size_t kWordsEos = 256;

// splitmix64's finaliser.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// What a group keeps of a position: no two groups the same.
uint64_t GroupChain(uint64_t chain, size_t group) { return group == 0 ? chain : Mix(chain + group) | 1; }

// In [0, 8): few ids near the top, most near 0. Exact products of a 20-bit fraction, so no rounding mode matters.
float Noise(uint64_t bits) {
  const float r = static_cast<float>(bits >> 44) * 0x1p-20f;
  const float r2 = r * r;
  return 8.0f * (r2 * r2);
}

// `words` follows this text: the byte after the longest suffix of what was said so far (digits count as equal).
constexpr std::string_view kScript =
    "Answer: First there are 3 + 4 = 7 of them. Then 7 * 2 = 14 remain.\nThe answer is 14.\n#### 14\n\nQuestion: How "
    "many";
// Above any noise: exp(-12) of the probability is left for all other ids together at temperature 1.
constexpr float kScriptBias = 24.0f;

char Folded(char c) { return c >= '0' && c <= '9' ? '0' : c; }

// Where in kScript the speaker stands: the index of the byte to say next.
size_t ScriptPosition(uint64_t recent) {
  for (size_t length = 7; length > 0; length--) {
    for (size_t end = length; end < kScript.size(); end++) {
      size_t i = 0;
      while (i < length && Folded(kScript[end - 1 - i]) == Folded(static_cast<char>(recent >> (8 * i)))) i++;
      if (i == length) return end;
    }
  }
  return 0;
}

}  // namespace

FakeModel::FakeModel(const FakeOptions& options, const Digest& weights) : options_(options) {
  info_.family = "fake";
  info_.vocab_size = options.vocab_size;
  info_.context_tokens = options.context_tokens;
  info_.kv_block_bytes = kBlock * static_cast<int64_t>(sizeof(Cell));
  info_.kv_windows = options.windows;
  info_.numerics_id = "fake/1";
  info_.weights = weights;
}

absl::Status FakeModel::ReserveCache(int32_t blocks) {
  if (blocks < 1) return InvalidArgument("cache: {} blocks (expected at least 1)", blocks);
  cells_.assign(static_cast<size_t>(blocks) * kBlock, Cell{});
  return absl::OkStatus();
}

absl::Status FakeModel::CopyBlock(int32_t from, int32_t to) {
  const int64_t blocks = static_cast<int64_t>(cells_.size()) / kBlock;
  for (const int32_t block : {from, to}) {
    if (block < 0 || block >= blocks) return InvalidArgument("block {} (expected 0 to {})", block, blocks - 1);
  }
  std::copy_n(cells_.begin() + from * kBlock, kBlock, cells_.begin() + to * kBlock);
  return absl::OkStatus();
}

absl::Status FakeModel::Forward(std::span<const Segment> segments, std::span<float> logits, Trace* trace) {
  if (trace != nullptr) return InvalidArgument("the fake model has no attention to trace");
  if (absl::Status status = CheckSegments(segments, logits); !status.ok()) return status;
  const size_t vocab = static_cast<size_t>(options_.vocab_size);
  size_t row = 0;
  for (const Segment& segment : segments) {
    if (absl::Status status = RunSegment(segment); !status.ok()) return status;
    for (const int32_t offset : segment.logit_rows) {
      WriteLogits(segment, segment.start + offset, logits.subspan(row++ * vocab, vocab));
    }
  }
  return absl::OkStatus();
}

absl::Status FakeModel::CheckTables(const Segment& segment, int64_t end, std::set<int32_t>& written) const {
  const int64_t blocks = static_cast<int64_t>(cells_.size()) / kBlock;
  const size_t groups = options_.windows.size(), entries = segment.blocks.size() / groups;
  if (entries * groups != segment.blocks.size() || static_cast<int64_t>(entries) * kBlock < end) {
    return InvalidArgument("segment: {} blocks for {} positions of {} groups", segment.blocks.size(), end, groups);
  }
  for (size_t group = 0; group < groups; group++) {
    const std::span<const int32_t> table = TableOf(segment, group, groups);
    const int64_t first = FirstSeen(options_.windows[group], segment.start);
    for (size_t i = 0; i < entries; i++) {
      const int64_t begin = static_cast<int64_t>(i) * kBlock;
      if (table[i] == kNoKvBlock && begin + kBlock <= first) continue;
      if (table[i] < 0 || table[i] >= blocks) return InvalidArgument("segment: block {}", table[i]);
      const bool writes = begin + kBlock > segment.start && begin < end;
      if (writes && !written.insert(table[i]).second) {
        return InvalidArgument("segment: block {} is written twice", table[i]);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status FakeModel::CheckSegments(std::span<const Segment> segments, std::span<float> logits) const {
  std::set<int32_t> written;
  size_t rows = 0;
  for (const Segment& s : segments) {
    const int64_t end = s.start + static_cast<int64_t>(s.tokens.size());
    if (s.tokens.empty() || s.start < 0 || end > options_.context_tokens) {
      return InvalidArgument("segment: positions {} to {} of {}", s.start, end, options_.context_tokens);
    }
    IHA_RETURN_IF_ERROR(CheckTables(s, end, written));
    for (const int32_t id : s.tokens) {
      if (id < 0 || id >= options_.vocab_size) return InvalidArgument("segment: token id {}", id);
    }
    for (const int32_t offset : s.logit_rows) {
      if (offset < 0 || offset >= static_cast<int32_t>(s.tokens.size())) {
        return InvalidArgument("segment: logits of token {} of {}", offset, s.tokens.size());
      }
    }
    rows += s.logit_rows.size();
  }
  if (logits.size() != rows * static_cast<size_t>(options_.vocab_size)) {
    return InvalidArgument("logits: room for {} values, {} rows of {}", logits.size(), rows, options_.vocab_size);
  }
  return absl::OkStatus();
}

FakeModel::Cell& FakeModel::At(const Segment& segment, size_t group, int64_t position) {
  const int64_t block = TableOf(segment, group, options_.windows.size())[static_cast<size_t>(position / kBlock)];
  return cells_[static_cast<size_t>(block * kBlock + position % kBlock)];
}

absl::Status FakeModel::RunSegment(const Segment& segment) {
  Cell cell{Mix(options_.seed), 0};
  for (size_t group = 0; group < options_.windows.size(); group++) {
    for (int64_t position = FirstSeen(options_.windows[group], segment.start); position < segment.start; position++) {
      if (At(segment, group, position).chain == 0) return InvalidArgument("position {} was never written", position);
    }
  }
  if (segment.start > 0) cell = At(segment, 0, segment.start - 1);
  for (size_t i = 0; i < segment.tokens.size(); i++) {
    const uint64_t id = static_cast<uint64_t>(segment.tokens[i]);
    cell.chain = Mix(cell.chain ^ Mix(id)) | 1;  // never 0
    cell.recent = cell.recent << 8 | (id & 0xff);
    for (size_t group = 0; group < options_.windows.size(); group++) {
      At(segment, group, segment.start + static_cast<int64_t>(i)) = {GroupChain(cell.chain, group), cell.recent};
    }
  }
  return absl::OkStatus();
}

void FakeModel::WriteLogits(const Segment& segment, int64_t position, std::span<float> out) {
  // Like attention, every cached position that the group's window shows takes part.
  uint64_t hash = 0;
  for (size_t group = 0; group < options_.windows.size(); group++) {
    for (int64_t p = FirstSeen(options_.windows[group], position); p <= position; p++) {
      hash = Mix(hash ^ At(segment, group, p).chain);
    }
  }
  for (size_t id = 0; id < out.size(); id++) out[id] = Noise(Mix(hash ^ Mix(id)));
  if (options_.style != FakeStyle::kWords || out.size() <= kWordsEos) return;
  const size_t at = ScriptPosition(At(segment, 0, position).recent);
  const char next = kScript[at];
  if (Folded(next) != '0') {
    out[static_cast<unsigned char>(next)] += kScriptBias;
  } else {
    for (size_t digit = '0'; digit <= '9'; digit++) out[digit] += kScriptBias;  // which one: the noise
  }
  // After the final answer a generation may end by itself instead of at a stop string.
  if (next == '\n' && kScript.substr(at).starts_with("\n\nQuestion")) out[kWordsEos] += kScriptBias;
}

}  // namespace iha::model
