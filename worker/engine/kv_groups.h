// kv_groups.h: which blocks a sequence needs of each layer group (model::ModelInfo::kv_windows). Pure; thread: any.
//
// A group without a window keeps every position. One with a window needs the positions that rows still to come see, and
// those of the next step: what is older is let go, so its blocks are bounded by window + step, however long the
// sequence.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/backend.h"

namespace iha::engine {

// [group][i]: the block of positions 64 i .., or model::kNoKvBlock.
using BlockTables = std::vector<std::vector<int32_t>>;

constexpr int64_t BlocksFor(int64_t positions) {
  return (positions + model::kKvBlockTokens - 1) / model::kKvBlockTokens;
}

class KvGroups {
 public:
  // windows: at least one. step: positions of one sequence in one step at most.
  KvGroups(std::vector<int64_t> windows, int64_t step) : windows_(std::move(windows)), step_(step) {}

  size_t count() const { return windows_.size(); }
  bool windowed(size_t group) const { return windows_[group] != 0; }
  // The first block with a position that rows at `next` or later see.
  int64_t FirstBlock(size_t group, int64_t next) const {
    return model::FirstSeen(windows_[group], next) / model::kKvBlockTokens;
  }
  // Entries of a table when `computed` of `tokens` positions are done: all, or what the next step can reach.
  int64_t Entries(size_t group, int64_t computed, int64_t tokens) const {
    return BlocksFor(windowed(group) ? std::min(tokens, computed + step_) : tokens);
  }
  // Blocks that a sequence holds at once at most while it grows to `positions`.
  int64_t MostBlocks(int64_t positions) const {
    int64_t blocks = 0;
    for (size_t group = 0; group < count(); group++) {
      const int64_t all = BlocksFor(positions);
      // window - 1 + step positions, which begin anywhere in a block.
      const int64_t reach = BlocksFor(windows_[group] - 1 + step_ - 1) + 1;
      blocks += windowed(group) ? std::min(all, reach) : all;
    }
    return blocks;
  }

 private:
  std::vector<int64_t> windows_;
  int64_t step_;
};

}  // namespace iha::engine
