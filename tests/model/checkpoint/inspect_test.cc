#include "model/checkpoint/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/checkpoint/flop_audit.h"
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

// Published numbers of this model (kernel notes of the design, H = 20, d = 128), to the digits that are given there.
TEST(CostTest, PaperModelRows) {
  ModelConfig config = PaperModel();
  config.tied_embeddings = true;
  EXPECT_NEAR(static_cast<double>(CountParameters(config).total()), 2.373e9, 0.5e6);
  const auto layer = [](int64_t pseudo, CollapseKind collapse = CollapseKind::kPerHead) {
    return LayerSpec{.kind = AttentionKind::kIha, .pseudo_heads = pseudo, .collapse = collapse};
  };
  const auto flops = [&](const LayerSpec& spec, int64_t length) { return LayerFlops(config, spec, length); };
  const struct {
    int64_t pseudo;
    double mix, per_head, global;
  } mixers[] = {{2, 0.61e6, 10e3, 0.2e6}, {4, 1.23e6, 20e3, 0.4e6}, {20, 6.1e6, 102e3, 2.05e6}};
  for (const auto& row : mixers) {
    EXPECT_NEAR(flops(layer(row.pseudo), 8192).mix, row.mix, 0.01 * row.mix) << row.pseudo;
    EXPECT_NEAR(flops(layer(row.pseudo), 8192).collapse, row.per_head, 0.03 * row.per_head);
    EXPECT_NEAR(flops(layer(row.pseudo, CollapseKind::kGlobal), 8192).collapse, row.global, 0.03 * row.global);
  }
  // 4 H d P^2 * keys, keys = N / 2: whole prompts of 4k, 16k and 64k tokens.
  const struct {
    int64_t pseudo, length;
    double scores;
  } prompts[] = {{2, 4096, 84e6},  {2, 16384, 336e6},  {2, 65536, 1342e6},
                 {4, 4096, 336e6}, {4, 16384, 1342e6}, {4, 65536, 5369e6}};
  for (const auto& row : prompts) {
    EXPECT_NEAR(flops(layer(row.pseudo), row.length).scores, row.scores, 0.005 * row.scores);
    LayerSpec window = layer(row.pseudo);
    window.window = Window{WindowUnit::kToken, 512};
    // 21 and 84 MFLOP a token where the prompt is much longer than the window.
    const double local = row.pseudo == 2 ? 21e6 : 84e6;
    if (row.length == 65536) {
      EXPECT_NEAR(flops(window, row.length).scores, local, 0.01 * local);
    }
  }
  // Cache bytes a token in bf16, all 26 layers IHA: 266 KB of base keys and values, P times that of mixed ones.
  for (const auto& [pseudo, kilobytes] : {std::pair{2, 532.0}, {4, 1065.0}, {20, 5325.0}}) {
    config.layers.assign(26, layer(pseudo));
    EXPECT_NEAR(static_cast<double>(KvNumbersPerToken(config, IhaCacheForm::kBase)) * 2e-3, 266, 0.5);
    EXPECT_NEAR(static_cast<double>(KvNumbersPerToken(config, IhaCacheForm::kMixed)) * 2e-3, kilobytes, 0.5);
  }
}

// The paper's hybrid against global attention: 26 layers, four windows of N / (2 P^2) tokens to one global layer.
TEST(FlopAuditTest, PaperScheduleIsThreeFifthsByThePapersCountAndMatchedInAll) {
  const ModelConfig global = PaperModel();
  const std::vector<int64_t> lengths{8192};
  for (const int64_t p : {2, 4}) {
    ModelConfig hybrid = global;
    for (size_t l = 0; l < 25; ++l) {
      if (l % 5 == 4) continue;
      hybrid.layers[l] = {
          .kind = AttentionKind::kIha, .window = Window{WindowUnit::kToken, 8192 / (2 * p * p)}, .pseudo_heads = p};
    }
    hybrid.layers.resize(25);
    ModelConfig same = global;
    same.layers.resize(25);
    FlopAudit audit = AuditFlops(hybrid, same, lengths);
    EXPECT_DOUBLE_EQ(audit.lengths[0].paper_ours, 0.6);
    EXPECT_DOUBLE_EQ(audit.lengths[0].paper_theirs, 1.0);
    // With the causal mask a window of half the pairs costs as much as global attention, which sees half of them too.
    audit.tolerance = 1;
    EXPECT_TRUE(audit.matched()) << audit.lengths[0].percent();
    ASSERT_EQ(audit.layers.size(), 1U);
    EXPECT_EQ(audit.layers[0].count, 20);
    EXPECT_NEAR(audit.layers[0].percent[0], audit.lengths[0].percent(), 1e-9);
    const auto json = nlohmann::json::parse(AuditJson(audit));
    double sum = 0;
    for (const auto& [part, percent] : json["lengths"][0]["percent_by_part"].items()) sum += percent.get<double>();
    EXPECT_NEAR(sum, audit.lengths[0].percent(), 1e-9);
  }
}

TEST(FlopAuditTest, SaysWhereTheDifferenceComesFrom) {
  const ModelConfig global = PaperModel();
  ModelConfig iha = global;
  for (const size_t l : {0, 1}) iha.layers[l] = {.kind = AttentionKind::kIha, .pseudo_heads = 2};
  const std::vector<int64_t> lengths{4096, 8192};
  FlopAudit audit = AuditFlops(iha, global, lengths);
  audit.directory = "ours", audit.against = "theirs", audit.tolerance = 1;
  EXPECT_FALSE(audit.matched());
  EXPECT_DOUBLE_EQ(audit.lengths[1].paper_ours, (2 * 4 + 24) / 26.0);
  const std::string text = AuditText(audit);
  EXPECT_THAT(text, HasSubstr("FLOP per token, ours against theirs, tolerance 1 %"));
  EXPECT_THAT(text, HasSubstr("NOT MATCHED"));
  EXPECT_THAT(text, HasSubstr("mix +0.0"));
  EXPECT_THAT(text, HasSubstr("2 x iha P=2 per_head flat_causal"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("linear")));  // no difference there
  ModelConfig shorter = global;
  shorter.layers.pop_back();
  EXPECT_THAT(AuditText(AuditFlops(shorter, global, lengths)), HasSubstr("25 layers against 26"));
  // Virtual windows count as they are, also the paper's own 205 of 20 x 8192.
  EXPECT_DOUBLE_EQ(
      PaperUnits({.kind = AttentionKind::kIha, .window = Window{WindowUnit::kVirtual, 205}, .pseudo_heads = 20}, 8192),
      20 * 205 / 8192.0);
}

// Keys are stored as they are; the values of a head are padded to 16 lanes.
TEST(CostTest, CacheOfNarrowHeadsIsPadded) {
  ModelConfig config;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = 8;
  config.layers = {{.kind = AttentionKind::kGlobal}};
  EXPECT_EQ(KvNumbersPerToken(config), 2 * (8 + 16));
  config.layers[0].kind = AttentionKind::kTalkingHeads;
  EXPECT_EQ(KvNumbersPerToken(config), 2 * (8 + 16));
  config.head_dim = 24;
  EXPECT_EQ(KvNumbersPerToken(config), 2 * (24 + 32));
  config.head_dim = 8;
  config.num_kv_heads = 4;
  config.layers[0].kind = AttentionKind::kDiff;  // two keys of 8 share a value of 16
  EXPECT_EQ(KvNumbersPerToken(config), 2 * (2 * 8 + 16));
  config.layers[0] = {.kind = AttentionKind::kIha, .pseudo_heads = 3};
  EXPECT_EQ(KvNumbersPerToken(config, IhaCacheForm::kMixed), 4 * 3 * (8 + 16));
  EXPECT_EQ(KvNumbersPerToken(config, IhaCacheForm::kBase), 4 * (8 + 8));
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

// Every query of every token, key by key: how many tokens back the window reaches.
TEST(CostTest, WindowTokensEqualTheEnumeratedReach) {
  for (int32_t pseudo = 1; pseudo <= 5; pseudo++) {
    for (int64_t size = 1; size <= 3 * pseudo + 2; size++) {
      for (const WindowUnit unit : {WindowUnit::kToken, WindowUnit::kVirtual}) {
        const LayerSpec layer{.kind = AttentionKind::kIha, .window = Window{unit, size}, .pseudo_heads = pseudo};
        int64_t most = 0;
        const int64_t token = 20;
        for (int64_t query = token * pseudo; query < (token + 1) * pseudo; query++) {
          for (int64_t key = 0; key <= query; key++) {
            const int64_t away = unit == WindowUnit::kVirtual ? query - key : token - key / pseudo;
            if (away < size) most = std::max(most, token - key / pseudo + 1);
          }
        }
        EXPECT_EQ(WindowTokens(layer), most) << pseudo << " pseudo heads, " << size;
      }
    }
  }
  EXPECT_EQ(WindowTokens(LayerSpec{.kind = AttentionKind::kGlobal}), 0);
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
  // Eight layers keep 8 tokens, two keep all.
  ASSERT_LE(inspection.head_dim, 16);
  EXPECT_EQ(json["kv_bytes_of_sequence"][1]["length"], 128);
  EXPECT_EQ(
      json["kv_bytes_of_sequence"][1]["f32"].get<int64_t>() - json["kv_bytes_of_sequence"][0]["f32"].get<int64_t>(),
      64 * 4 * 2 * (inspection.num_kv_heads * (inspection.head_dim + 16)))
      << "two layers see all: keys, and values in 16 lanes";
  EXPECT_LT(json["kv_bytes_of_sequence"][0]["f32"].get<int64_t>(), 64 * inspection.kv_numbers * 4);
  EXPECT_THAT(text, HasSubstr("KV bytes of 128 tokens, windows keeping their last: "));
}

}  // namespace
}  // namespace iha::checkpoint
