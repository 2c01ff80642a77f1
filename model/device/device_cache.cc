#include "model/device/device_cache.h"

#include <limits>

#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::model {

DeviceCache::DeviceCache(uint32_t kv_heads, uint32_t d, std::vector<LayerShape> layers)
    : kv_heads_(kv_heads), d_(d), layers_(std::move(layers)) {
  std::vector<LayerCache> caches;
  for (const LayerShape& layer : layers_) {
    caches.push_back({.bytes = 2 * layer.pseudo * page_bytes(), .window = layer.window});
  }
  placement_ = PlaceLayers(caches);
}

absl::Status DeviceCache::Reserve(DeviceRuntime& runtime, int32_t blocks) {
  const size_t pages = static_cast<size_t>(blocks) * pages_per_block();
  if (pages > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return ResourceExhausted("KV cache of {} blocks of {} pages: expected at most 2^31 - 1 pages; lower the budget",
                             blocks, pages_per_block());
  }
  IHA_ASSIGN_OR_RETURN(memory_, DeviceRows::Make(runtime, pages * page_elements(), "KV cache", DeviceFill::kReadable));
  return absl::OkStatus();
}

absl::Status DeviceCache::CopyBlock(DeviceRuntime& runtime, int32_t from, int32_t to) const {
  // As if the first half of a block's pages were keys, the second values.
  const uint32_t half = pages_per_block() / 2;
  std::vector<int32_t> pairs;
  for (uint32_t page = 0; page < half; page++) {
    for (const int32_t block : {from, to}) {
      pairs.push_back(block * static_cast<int32_t>(pages_per_block()) + static_cast<int32_t>(page));
    }
  }
  IHA_ASSIGN_OR_RETURN(const auto list, DeviceArray<int32_t>::Copy(runtime, pairs, "pages to copy"));
  const kernels::KvPagesGpu pages{.k_pages = memory_.data(),
                                  .v_pages = memory_.data() + half * page_elements(),
                                  .kv_heads = kv_heads_,
                                  .d = d_,
                                  .d_v = d_};
  return runtime.Check(kernels::KvCopyGpu({.pages = pages, .pairs = list.data(), .count = half}, runtime.stream()),
                       "kv_copy");
}

DeviceCache::Layer DeviceCache::At(size_t layer) const {
  const KvPlacement::Place& place = placement_.layers[layer];
  uint16_t* const keys = memory_.data() + place.offset / sizeof(uint16_t);
  return {.group = place.group,
          .pages = {.k_pages = keys,
                    .v_pages = keys + layers_[layer].pseudo * page_elements(),
                    .kv_heads = kv_heads_,
                    .d = d_,
                    .d_v = layers_[layer].d_v}};
}

}  // namespace iha::model
