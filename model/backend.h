// backend.h: one checkpoint, loaded, that turns token ids into logits over a paged KV cache.
//
// Implementations: transformer/ (cpu-exact), device/ (cuda-exact, cuda-fast and the emulated device), torch/
// (cross-check), fake_model (tests and dry runs). A Backend belongs to one thread (the engine's executor); info() may
// be read from any. It owns its weights and cache memory and blocks until the step is done. Exactness
// (docs/contracts/numerics.md): the logits of a position have the same bits alone, in any batch, with any chunking and
// any number of threads. Errors: ResourceExhausted (cache or scratch does not fit: shrink the batch or the budget),
// InvalidArgument (bad token id or table: a bug of the caller), Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/digest.h"
#include "model/op_profile.h"

namespace iha::model {

// Keys of one cache block; equals the key block of attention, so blocks are aligned to absolute positions.
inline constexpr int32_t kKvBlockTokens = 64;
// In a block table: no block. Stands where no row of the step sees a position of the block.
inline constexpr int32_t kNoKvBlock = -1;

struct ModelInfo {
  std::string family;  // "llama", "fake", ...
  int32_t vocab_size = 0;
  int64_t context_tokens = 0;  // longest prompt + generation
  int64_t kv_block_bytes = 0;  // one block
  // Blocks that the backend takes beside those it is asked for (rows that fill a recorded step up write there).
  int32_t spare_blocks = 0;
  // The layer groups of the cache, at least one. A block holds 64 tokens of one group; all groups take blocks from the
  // same ids. Of each group: how many tokens a row sees, its own included; 0 = all before it.
  std::vector<int64_t> kv_windows = {0};
  // What the device that the cache lies on has left beside the weights; 0: it lies in the host's memory, or nobody
  // says.
  int64_t device_bytes = 0;
  std::string numerics_id;
  Digest weights;
};

// The first position that rows at `position` or later see. As kernels::FirstVisible.
constexpr int64_t FirstSeen(int64_t window, int64_t position) {
  return window == 0 || position < window ? 0 : position - window + 1;
}

// Consecutive new tokens of one sequence: positions start .. start + tokens.size() - 1. Positions before `start` are
// in the cache already.
struct Segment {
  std::span<const int32_t> tokens;
  int64_t start = 0;
  // [group][i]: the block of positions 64 i .. 64 i + 63, or kNoKvBlock; as many entries for each group, which cover
  // every position above.
  std::span<const int32_t> blocks;
  std::span<const int32_t> logit_rows;  // indices into `tokens` whose logits are wanted, increasing; may be empty
};

// The entries of one group.
inline std::span<const int32_t> TableOf(const Segment& segment, size_t group, size_t groups) {
  const size_t entries = segment.blocks.size() / groups;
  return segment.blocks.subspan(group * entries, entries);
}

// Intermediate values, for oracles only.
struct Trace {
  // [layer][token of all segments in order][hidden]: output of o_proj, bias included, before the residual sum.
  std::vector<std::vector<float>> attn_out;
};

class TokenDrawing;

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const ModelInfo& info() const = 0;
  // Called once, before the first Forward: block ids are 0 .. blocks - 1.
  [[nodiscard]] virtual absl::Status ReserveCache(int32_t blocks) = 0;
  // Copy-on-write: `to` becomes a copy of `from`.
  [[nodiscard]] virtual absl::Status CopyBlock(int32_t from, int32_t to) = 0;
  // One step. logits: row-major [sum of logit_rows, vocab_size], segments in order. trace may be null.
  [[nodiscard]] virtual absl::Status Forward(std::span<const Segment> segments, std::span<float> logits,
                                             Trace* trace) = 0;
  // Not null: it can also draw tokens where its logits are (token_drawing.h).
  virtual TokenDrawing* drawing() { return nullptr; }
  // Of all steps so far; zeros where the backend keeps none. The backend's thread.
  virtual OpTotals profile() const { return {}; }
};

}  // namespace iha::model
