// fake_model.h: a backend without weights, for tests and dry runs of everything around the model (backend "fake").
//
// Logits are a hash of the whole prefix, and every position's part of that hash lives in the cache block of that
// position: a wrong block table, a missed copy, a stale or unwritten block changes the tokens or is an error. So does,
// with layer groups, what is read too early or let go too early of a group with a window. Bits are the same in any
// batch and with any chunking. Styles: `hash`, any id can come next; `words`, bytes (ids 0..255, eos 256) that read
// like worked answers ending in "#### 12", so that benchmarks, stop strings and graders have work. Thread and errors:
// as model::Backend; reading a position that was never written is InvalidArgument.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/backend.h"

namespace iha::model {

enum class FakeStyle { kHash, kWords };

struct FakeOptions {
  int32_t vocab_size = 257;  // `words` needs 257
  int64_t context_tokens = 4096;
  uint64_t seed = 1;  // another seed is another model
  FakeStyle style = FakeStyle::kHash;
  std::vector<int64_t> windows = {0};  // info().kv_windows; the first: 0 or at least 2
};

class FakeModel final : public Backend {
 public:
  // `weights` becomes info().weights.
  explicit FakeModel(const FakeOptions& options, const Digest& weights = {});
  // A directory made by MakeFakeCheckpoint. Its weights digest is that of config.json. NotFound, InvalidArgument.
  static absl::StatusOr<std::unique_ptr<FakeModel>> Load(const std::string& dir, int64_t positions = 0);

  const ModelInfo& info() const override { return info_; }
  absl::Status ReserveCache(int32_t blocks) override;
  absl::Status CopyBlock(int32_t from, int32_t to) override;
  absl::Status Forward(std::span<const Segment> segments, std::span<float> logits, Trace* trace) override;

 private:
  // What the cache holds for a position.
  struct Cell {
    uint64_t chain = 0;   // hash of all tokens up to here; 0 = never written
    uint64_t recent = 0;  // the last eight ids, low byte of each, newest lowest
  };

  absl::Status CheckSegments(std::span<const Segment> segments, std::span<float> logits) const;
  absl::Status RunSegment(const Segment& segment);
  Cell& At(const Segment& segment, size_t group, int64_t position);
  absl::Status CheckTables(const Segment& segment, int64_t end, std::set<int32_t>& written) const;
  void WriteLogits(const Segment& segment, int64_t position, std::span<float> out);

  const FakeOptions options_;
  ModelInfo info_;
  std::vector<Cell> cells_;  // [block][position in block]
};

// Writes config.json, generation_config.json, tokenizer.json (byte-level BPE without merges: id = byte, eos = 256) and
// tokenizer_config.json (with a chat template) into `dir`, which is made if absent.
absl::Status MakeFakeCheckpoint(const std::string& dir, const FakeOptions& options);

}  // namespace iha::model
