#include "model/checkpoint/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/roots.h"

namespace iha::checkpoint {
namespace {

using ::testing::HasSubstr;

// Pairs of one head by enumeration, straight from the definitions of the masks.
double CountPairs(const LayerSpec& layer, int64_t length) {
  const int64_t p = layer.pseudo_heads;
  int64_t pairs = 0;
  for (int64_t query = 0; query < length * p; ++query) {
    for (int64_t key = 0; key < length * p; ++key) {
      bool seen = layer.mask == IhaMask::kFlatCausal ? key <= query : key / p <= query / p;
      if (layer.window.has_value()) {
        seen &= layer.window->unit == WindowUnit::kVirtual ? key > query - layer.window->size
                                                           : key / p > query / p - layer.window->size;
      }
      pairs += seen ? 1 : 0;
    }
  }
  return static_cast<double>(pairs) / static_cast<double>(length);
}

TEST(CostTest, VisiblePairsEqualTheEnumeratedMask) {
  std::vector<LayerSpec> layers;
  for (const int64_t p : {1, 2, 3}) {
    for (const IhaMask mask : {IhaMask::kFlatCausal, IhaMask::kTokenCausal}) {
      LayerSpec layer{.kind = AttentionKind::kIha, .pseudo_heads = p, .mask = mask};
      layers.push_back(layer);
      for (const int64_t size : {1, 4, 13, 50}) {
        layer.window = Window{WindowUnit::kToken, size};
        layers.push_back(layer);
        layer.window = Window{WindowUnit::kVirtual, size};
        if (mask == IhaMask::kFlatCausal) layers.push_back(layer);
      }
    }
  }
  for (const LayerSpec& layer : layers) {
    for (const int64_t length : {1, 5, 13, 20}) {
      // All terms are small integers or halves, so only the final division rounds.
      EXPECT_DOUBLE_EQ(VisiblePairs(layer, length), CountPairs(layer, length))
          << "P=" << layer.pseudo_heads << " window " << (layer.window.has_value() ? layer.window->size : 0);
    }
  }
}

// The paper's model: 26 layers, 20 heads of 128, hidden 2560, FFN 10240.
ModelConfig PaperModel() {
  ModelConfig config;
  config.vocab_size = 128256;
  config.hidden_size = 2560;
  config.intermediate_size = 10240;
  config.num_heads = config.num_kv_heads = 20;
  config.head_dim = 128;
  config.mlp = MlpKind::kPlain;
  config.ropes.resize(1);
  config.layers.resize(26);
  return config;
}

TEST(CostTest, PaperModelCostsWhatThePaperSaysOfIt) {
  ModelConfig config = PaperModel();
  const FlopsPerToken flops = LayerFlops(config, config.layers[0], 8192);
  EXPECT_EQ(flops.linear + flops.mlp, 2.0 * (4 * 2560 * 2560 + 2 * 2560 * 10240));  // 157 MFLOP a layer
  EXPECT_EQ(flops.scores, 4.0 * 2560 * 8193 / 2);                                   // 42 MFLOP
  EXPECT_EQ(ModelFlops(config, 8192).head, 2.0 * 128256 * 2560);                    // 657 MFLOP

  LayerSpec iha{.kind = AttentionKind::kIha, .pseudo_heads = 2};
  EXPECT_EQ(LayerFlops(config, iha, 8192).mix, 6.0 * 20 * 20 * 2 * 128);  // 0.61 MFLOP
  EXPECT_EQ(LayerFlops(config, iha, 8192).collapse, 2.0 * 20 * 2 * 128);
  iha.collapse = CollapseKind::kGlobal;
  EXPECT_EQ(LayerFlops(config, iha, 8192).collapse, 2.0 * 20 * 20 * 2 * 128);
  // Global IHA costs P^2 times global attention, up to the diagonal.
  EXPECT_NEAR(LayerFlops(config, iha, 8192).scores / flops.scores, 4.0, 1e-3);

  // Four windows of N / (2 P^2) tokens and one global layer cost about 3/5 of five global ones: half each, less the
  // window's ramp at the start (a share W / 2N of it).
  iha.window = Window{WindowUnit::kToken, 8192 / 8};
  EXPECT_NEAR(LayerFlops(config, iha, 8192).scores / flops.scores, 1.0, 0.07);
}

TEST(CostTest, CacheAndParametersByPart) {
  ModelConfig config = PaperModel();
  config.layers.resize(2);
  config.layers[1] = {.kind = AttentionKind::kIha, .pseudo_heads = 3};
  EXPECT_EQ(KvNumbersPerToken(config, IhaCacheForm::kBase), 2 * 2 * 2560);
  EXPECT_EQ(KvNumbersPerToken(config, IhaCacheForm::kMixed), 2 * 2560 + 3 * 2 * 2560);
  EXPECT_EQ(KvNumbersPerToken(config), 2 * 2560 + 3 * 2 * 2560);
  config.layers[1].pseudo_heads = 6;
  EXPECT_EQ(KvNumbersPerToken(config), 2 * 2 * 2560);
  config.layers[1].pseudo_heads = 3;
  config.tied_embeddings = true;
  const ParameterCount count = CountParameters(config);
  EXPECT_EQ(count.embedding, 128256 * 2560);
  EXPECT_EQ(count.head, 0);
  EXPECT_EQ(count.attention, 2 * 4 * 2560 * 2560 + 3 * 20 * 20 * 3 + 20 * 3);
  EXPECT_EQ(count.mlp, 2 * 2 * 2560 * 10240);
  EXPECT_EQ(count.norms, 5 * 2560);
}

TEST(CostTest, IhaCachesMixedWhereTheSpeedIsWorthTheMemory) {
  // NUM-9a: mixed up to P = 1 + H / P.
  struct {
    int64_t heads, pseudo;
    bool mixed;
  } const table[] = {{20, 1, true},   {20, 2, true}, {20, 4, true}, {20, 5, true}, {20, 6, false},
                     {20, 20, false}, {4, 2, true},  {4, 3, false}, {6, 3, true},  {5, 3, false},
                     {1, 1, true},    {1, 2, false}, {2, 2, true},  {32, 6, true}, {32, 7, false}};
  for (const auto& row : table) {
    ModelConfig config;
    config.num_heads = row.heads;
    LayerSpec layer{.kind = AttentionKind::kIha, .pseudo_heads = row.pseudo};
    EXPECT_EQ(IhaCachesMixed(config, layer), row.mixed) << "H " << row.heads << " P " << row.pseudo;
    EXPECT_TRUE(IhaCachesMixed(config, layer, IhaCacheForm::kMixed));
    EXPECT_FALSE(IhaCachesMixed(config, layer, IhaCacheForm::kBase));
    layer.qk_norm = QkNorm::kPostMix;
    EXPECT_TRUE(IhaCachesMixed(config, layer));
    EXPECT_TRUE(IhaCachesMixed(config, layer, IhaCacheForm::kBase));
  }
}

TEST(InspectTest, SaysWhatTheFolderHolds) {
  IHA_REQUIRE_CASES(cases);
  const auto checkpoint = Checkpoint::Open(cases + "/attention_oracles/iha_hybrid10");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const std::vector<int64_t> lengths{64, 128};
  const Inspection inspection = Inspect(*checkpoint, lengths);
  EXPECT_EQ(inspection.parameters.total(), checkpoint->parameters());
  EXPECT_EQ(inspection.layers.size(), 10U);
  const std::string text = InspectionText(inspection);
  EXPECT_THAT(text, HasSubstr("family: llama + iha_eval\n"));
  EXPECT_THAT(text, HasSubstr("layer 0-3: iha P=2 per_head flat_causal positions virtual window 8 tokens, rope half"));
  EXPECT_THAT(text, HasSubstr("layer 4: global"));
  EXPECT_THAT(text, HasSubstr("digest: " + checkpoint->WeightsDigest().Hex()));
  EXPECT_THAT(text, HasSubstr("by form of iha caches: base"));
  const auto json = nlohmann::json::parse(InspectionJson(inspection));
  EXPECT_EQ(json["parameters"]["total"], checkpoint->parameters());
  EXPECT_EQ(json["flops_per_token"][1]["length"], 128);
  EXPECT_EQ(json["flops_per_token"][1]["total"], ModelFlops(checkpoint->config(), 128).total());
  EXPECT_EQ(json["dtypes"]["F32"], checkpoint->parameters());
}

}  // namespace
}  // namespace iha::checkpoint
