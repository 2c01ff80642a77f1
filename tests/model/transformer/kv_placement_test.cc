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
    const int64_t window = placement.windows[a.group];
    EXPECT_TRUE(window == 0 || (layers[i].window != 0 && window >= layers[i].window)) << i;
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
  // 3 + 3 units in a block of 7, 5 in another: a fourteenth is empty.
  const auto odd = Layers({{3, 64}, {3, 64}, {1, 64}, {6, 0}});
  ExpectSound(odd, PlaceLayers(odd));
  EXPECT_EQ(PlaceLayers(odd).windows, (std::vector<int64_t>{0, 64}));
  EXPECT_EQ(PlaceLayers(odd).block_bytes, 7 * kUnit);
}

// Five windows, five sizes: the shortest join the longer ones until little is wasted.
TEST(KvPlacement, WindowsGrowWhereSizesDoNotGoTogether) {
  const auto layers = Layers({{1, 4}, {2, 9}, {8, 100}, {3, 20}, {8, 0}});
  const KvPlacement placement = PlaceLayers(layers);
  ExpectSound(layers, placement);
  EXPECT_EQ(placement.windows, (std::vector<int64_t>{0, 20, 100}));
  EXPECT_EQ(placement.block_bytes, 8 * kUnit);
  const auto hopeless = Layers({{1, 4}, {8, 0}});
  EXPECT_EQ(PlaceLayers(hopeless).windows, std::vector<int64_t>{0});
  EXPECT_EQ(PlaceLayers(hopeless).block_bytes, 9 * kUnit);
  const auto windows_alone = Layers({{1, 4}, {8, 9}});
  EXPECT_EQ(PlaceLayers(windows_alone).windows, std::vector<int64_t>{9});
}

}  // namespace
}  // namespace iha::model
