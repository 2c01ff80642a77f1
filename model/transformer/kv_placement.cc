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

size_t BytesOf(const KvPlacement& placement) { return placement.block_bytes * placement.windows.size(); }

// The fewest bytes, then the fewest blocks.
KvPlacement FillBestSize(std::span<const LayerCache> layers) {
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
    if (best.windows.empty() || BytesOf(placement) < BytesOf(best)) best = std::move(placement);
  }
  return best;
}

// The shortest windows become as long as the next; the longest of all is none.
void RaiseShortest(std::vector<LayerCache>& layers) {
  std::set<int64_t> windows;
  for (const LayerCache& layer : layers) windows.insert(layer.window);
  const bool unbounded = windows.erase(0) > 0;
  const int64_t shortest = *windows.begin();
  windows.erase(shortest);
  const int64_t next = windows.empty() && unbounded ? 0 : *windows.begin();
  for (LayerCache& layer : layers) layer.window = layer.window == shortest ? next : layer.window;
}

}  // namespace

KvPlacement PlaceLayers(std::span<const LayerCache> layers) {
  size_t bytes = 0;
  for (const LayerCache& layer : layers) bytes += layer.bytes;
  std::vector<LayerCache> raised(layers.begin(), layers.end());
  while (true) {
    KvPlacement placement = FillBestSize(raised);
    // Layers of one window waste nothing: this ends.
    if (BytesOf(placement) - bytes <= bytes / 8) return placement;
    RaiseShortest(raised);
  }
}

}  // namespace iha::model
