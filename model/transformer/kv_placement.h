// kv_placement.h: which layers share a cache block.
//
// Layers with equal windows may share one: they let go of a position at the same time. All blocks have one size, so
// that one pool serves every group and no budget is split in advance. A layer's slice lies within one block. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace iha::model {

struct LayerCache {
  size_t bytes = 0;    // of a block's 64 tokens; a multiple of 64
  int64_t window = 0;  // tokens that a row sees, its own included; 0 = all before it
};

struct KvPlacement {
  struct Place {
    size_t group = 0;
    size_t offset = 0;  // of the layer's slice in the group's blocks
  };
  size_t block_bytes = 0;
  std::vector<int64_t> windows;  // of each group
  std::vector<Place> layers;
};

// The block size with the fewest bytes for 64 tokens of all layers, then the fewest blocks. Layers of one window: one
// group, whose block holds them all. Where the sizes do not go together (more than an eighth would stay empty), layers
// with short windows keep as much as those with the next longer ones, or everything.
KvPlacement PlaceLayers(std::span<const LayerCache> layers);

}  // namespace iha::model
