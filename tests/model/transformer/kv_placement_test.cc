// Which layers share a cache block.

#include "model/transformer/kv_placement.h"

#include <gtest/gtest.h>

#include <numeric>

namespace iha::model {
namespace {

constexpr size_t kUnit = 64;

std::vector<LayerCache> Layers(const std::vector<std::pair<size_t, int64_t>>& units_and_windows) {
  std::vector<LayerCache> layers;
  for (const auto& [units, window] : units_and_windows) layers.push_back({units * kUnit, window});
  return layers;
}

// Slices lie in their blocks and do not overlap; a group has one window.
void ExpectSound(const std::vector<LayerCache>& layers, const KvPlacement& placement) {
  ASSERT_EQ(placement.layers.size(), layers.size());
  for (size_t i = 0; i < layers.size(); i++) {
    const KvPlacement::Place& a = placement.layers[i];
    ASSERT_LT(a.group, placement.windows.size());
    EXPECT_EQ(placement.windows[a.group], layers[i].window);
    EXPECT_LE(a.offset + layers[i].bytes, placement.block_bytes);
    for (size_t j = 0; j < i; j++) {
      const KvPlacement::Place& b = placement.layers[j];
      EXPECT_TRUE(a.group != b.group || b.offset + layers[j].bytes <= a.offset ||
                  a.offset + layers[i].bytes <= b.offset);
    }
  }
}

TEST(KvPlacement, LayersOfOneWindowShareABlock) {
  for (const int64_t window : {0, 100}) {
    const auto layers = Layers({{3, window}, {1, window}, {7, window}});
    const KvPlacement placement = PlaceLayers(layers);
    ExpectSound(layers, placement);
    EXPECT_EQ(placement.windows, std::vector<int64_t>{window});
    EXPECT_EQ(placement.block_bytes, 11 * kUnit);
    EXPECT_EQ(placement.layers[1].offset, 3 * kUnit) << "in the order of layers";
  }
}

TEST(KvPlacement, FourLocalAndOneGlobalAreFiveGroups) {
  const auto layers = Layers({{2, 64}, {2, 64}, {2, 64}, {2, 64}, {2, 0}});
  const KvPlacement placement = PlaceLayers(layers);
  ExpectSound(layers, placement);
  EXPECT_EQ(placement.windows, (std::vector<int64_t>{0, 64, 64, 64, 64}));
  EXPECT_EQ(placement.block_bytes, 2 * kUnit);
}

// Gemma 3, 26 layers: every sixth sees all. Blocks of two layers waste nothing.
TEST(KvPlacement, EqualLayersWasteNothing) {
  std::vector<LayerCache> layers;
  for (int i = 0; i < 26; i++) layers.push_back({5 * kUnit, i % 6 == 5 ? 0 : 512});
  const KvPlacement placement = PlaceLayers(layers);
  ExpectSound(layers, placement);
  EXPECT_EQ(placement.block_bytes * placement.windows.size(), 26 * 5 * kUnit);
  EXPECT_EQ(placement.windows.size(), 13u);
}

// A global iha layer with four mixed heads for each local one: the four local layers fill one block.
TEST(KvPlacement, LayersOfSeveralSizes) {
  const auto layers = Layers({{1, 64}, {1, 64}, {1, 64}, {1, 64}, {4, 0}, {1, 64}, {1, 64}, {1, 64}, {1, 64}, {4, 0}});
  const KvPlacement placement = PlaceLayers(layers);
  ExpectSound(layers, placement);
  EXPECT_EQ(placement.block_bytes, 8 * kUnit);
  EXPECT_EQ(placement.windows, (std::vector<int64_t>{0, 64}));
  // No size fits all: 3 + 3 of 7 local units in a block of 8, or 7 in one of 7 beside 5.
  const auto odd = Layers({{3, 64}, {3, 64}, {1, 64}, {5, 0}});
  const KvPlacement waste = PlaceLayers(odd);
  ExpectSound(odd, waste);
  EXPECT_EQ(waste.block_bytes, 7 * kUnit);
  EXPECT_EQ(waste.windows.size(), 2u);
}

}  // namespace
}  // namespace iha::model
