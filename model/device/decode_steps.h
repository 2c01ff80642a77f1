// decode_steps.h: steps of one token for each sequence, whose launches are recorded once for a size and replayed.
//
// All lengths are read on the device, so what is enqueued depends only on the step's size: sequences, rounded up
// (DecodeSequences), and blocks in a page table, rounded up to a power of two. The first step of a size runs as any
// other, the next one is recorded, from then on they are replayed: one call in place of some ten a layer. Sequences
// that only fill the size up take token 0 at positions of a block of their own; rows do not see each other (DEV-4), so
// replayed or not, a row has the same bits. Where memory does not suffice for a recording, steps run as others do.
//
// Thread: the backend's. Errors: the runtime's, and those of the launches.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/backend.h"
#include "model/device/device_cache.h"
#include "model/device/device_runtime.h"
#include "model/device/device_step.h"

namespace iha::model {

// Sizes that steps are filled up to: few, as each is recorded by itself, and at most 31 sequences too many.
constexpr uint32_t DecodeSequences(uint32_t sequences) {
  const uint32_t unit = sequences <= 4 ? std::bit_ceil(sequences) : sequences <= 64 ? 8 : 32;
  return (sequences + unit - 1) / unit * unit;
}
// No more than `longest` sequences have, where none has more: scratch is as large as what the tables could hold.
constexpr uint32_t DecodeBlocks(uint32_t blocks, uint32_t longest) {
  return std::max(blocks, std::min(std::bit_ceil(std::max(blocks, 4u)), longest));
}

class DecodeSteps {
 public:
  // Enqueues the step up to its logits, [wanted rows][n].
  using Launches = std::function<absl::Status(DeviceStep& step, const DeviceArray<float>& logits)>;
  struct Model {
    DeviceRuntime* runtime = nullptr;
    const DeviceCache* cache = nullptr;
    DeviceRopes* ropes = nullptr;
    std::function<uint32_t(uint32_t position)> last_rope_row;  // of a step up to this position
    int64_t context_tokens = 0;
    uint32_t n = 0;           // of logits
    int32_t spare_block = 0;  // of the cache, no sequence's
    Launches launches;
  };
  explicit DecodeSteps(Model model);

  // Whether the segments are such a step: one token and its logits each.
  static bool Fits(std::span<const Segment> segments);
  // Enqueues it. The logits of its segments, in order (rows behind them are nobody's), until the next call.
  absl::StatusOr<const DeviceArray<float>*> Run(std::span<const Segment> segments);

 private:
  struct Size {
    std::optional<DeviceStep> step;
    std::unique_ptr<DeviceGraph> graph;
    int64_t moves = 0;           // Moves() when it was recorded
    bool cannot_record = false;  // no memory
  };
  absl::Status First(Size& size, std::span<const Segment> segments, uint32_t blocks);
  absl::Status Again(Size& size, std::span<const Segment> segments, uint32_t blocks);
  absl::Status Record(Size& size);
  absl::Status ExtendRopes(uint32_t blocks);
  // Of what a recording knows the address of and does not own.
  int64_t Moves() const { return model_.ropes->moves() + logits_moves_; }

  const Model model_;
  const std::vector<int32_t> spare_blocks_;  // a table of one block for each group
  DeviceArray<float> logits_;                // of the largest step yet
  int64_t logits_moves_ = 0;
  std::map<std::pair<uint32_t, uint32_t>, Size> sizes_;  // by sequences and blocks
};

}  // namespace iha::model
