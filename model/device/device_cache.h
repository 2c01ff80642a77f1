// device_cache.h: the cache of all layers: blocks of 64 tokens of one layer group (kv_placement.h), in pages of 64
// rows.
//
// Keys and values of a token are equally many bytes in every kind (a value twice as wide is that of a pair of heads),
// so all pages have one size: a layer has P pages of keys, then P of values, at a place of its own in the blocks of its
// group. Page = block pages_per_block + part, counted from where the layer's keys, or values, begin. Thread: the
// backend's. Errors: the runtime's; of Reserve also ResourceExhausted (more pages than kernels can count).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "kernels/attention/kv_pages_gpu.h"
#include "model/backend.h"
#include "model/device/device_runtime.h"
#include "model/transformer/kv_placement.h"

namespace iha::model {

class DeviceCache {
 public:
  struct LayerShape {
    uint32_t pseudo = 1;
    uint32_t d_v = 0;    // d, or twice that
    int64_t window = 0;  // tokens; 0: all
  };
  struct Layer {
    size_t group = 0;
    kernels::KvPagesGpu pages;
  };

  DeviceCache() = default;
  DeviceCache(uint32_t kv_heads, uint32_t d, std::vector<LayerShape> layers);

  const std::vector<int64_t>& windows() const { return placement_.windows; }  // of each group
  int64_t block_bytes() const { return static_cast<int64_t>(placement_.block_bytes); }
  uint32_t pages_per_block() const { return static_cast<uint32_t>(placement_.block_bytes / page_bytes()); }

  // Once.
  absl::Status Reserve(DeviceRuntime& runtime, int32_t blocks);
  absl::Status CopyBlock(DeviceRuntime& runtime, int32_t from, int32_t to) const;
  // After Reserve.
  Layer At(size_t layer) const;

 private:
  size_t page_elements() const { return size_t{kKvBlockTokens} * kv_heads_ * d_; }
  size_t page_bytes() const { return page_elements() * sizeof(uint16_t); }

  uint32_t kv_heads_ = 0, d_ = 0;
  std::vector<LayerShape> layers_;
  KvPlacement placement_;
  DeviceRows memory_;
};

}  // namespace iha::model
