#include "model/transformer/kv_placement.h"

#include <algorithm>
#include <map>
#include <set>

namespace iha::model {
namespace {

// Windows in order, within each the layers in order: a layer that no longer fits starts the next group.
KvPlacement Fill(std::span<const LayerCache> layers, size_t block_bytes) {
  KvPlacement placement{.block_bytes = block_bytes, .windows = {}, .layers = {}};
  placement.layers.resize(layers.size());
  std::set<int64_t> windows;
  for (const LayerCache& layer : layers) windows.insert(layer.window);
  for (const int64_t window : windows) {
    size_t used = block_bytes;
    for (size_t i = 0; i < layers.size(); i++) {
      if (layers[i].window != window) continue;
      if (used + layers[i].bytes > block_bytes) {
        placement.windows.push_back(window);
        used = 0;
      }
      placement.layers[i] = {placement.windows.size() - 1, used};
      used += layers[i].bytes;
    }
  }
  return placement;
}

}  // namespace

KvPlacement PlaceLayers(std::span<const LayerCache> layers) {
  size_t largest = 0;
  for (const LayerCache& layer : layers) largest = std::max(largest, layer.bytes);
  // What the first layers of a window take together: 1, 2, .. all of them.
  std::map<int64_t, size_t> sums;
  std::set<size_t, std::greater<>> sizes;
  for (const LayerCache& layer : layers) {
    const size_t sum = sums[layer.window] += layer.bytes;
    if (sum >= largest) sizes.insert(sum);
  }
  KvPlacement best;
  for (const size_t size : sizes) {
    KvPlacement placement = Fill(layers, size);
    const size_t bytes = size * placement.windows.size(), best_bytes = best.block_bytes * best.windows.size();
    if (best.windows.empty() || bytes < best_bytes) best = std::move(placement);
  }
  return best;
}

}  // namespace iha::model
