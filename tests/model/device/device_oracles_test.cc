// The forward pass over the GPU kernels against the oracles: every attention kind and family within the bound of bf16
// (docs/contracts/numerics.md).
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "model/device/bf16_bound.h"
#include "model/oracle.h"
#include "tests/model/device/tiny_checkpoint.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"

namespace iha::model {
namespace {

std::vector<std::string> Folders(const std::string& root) {
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    const std::string path = entry.path().string();
    // Forms of transformers 4 and 5 are the same function.
    if (!std::filesystem::exists(path + "/expected.safetensors") || path.ends_with(".v4")) continue;
    folders.push_back(path);
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

// Chunks of 16: the kernels take rows of at most 16 in tiles of 16.
absl::StatusOr<OracleErrors> Check(const std::string& folder) {
#ifdef IHA_TEST_CUDA
  const absl::StatusOr<std::string> backend = CudaBackendOn("cuda");
  if (!backend.ok()) return backend.status();
  return CheckOracle(folder, {.threads = 1, .numerics = CudaNumerics(*backend), .device = "cuda"}, 16);
#else
  return CheckOracle(folder, {.threads = 1, .numerics = EmulatedNumerics(), .device = kEmulatedDevice}, 16);
#endif
}

void ExpectWithinBounds(const std::string& folder, const OracleErrors& errors) {
  SCOPED_TRACE(folder);
  EXPECT_LE(errors.logits, errors.logit_atol);
  EXPECT_GE(errors.logits, 0x1p-10);  // an engine in fp32 is closer: then this is not the one that ran
  for (size_t l = 0; l < errors.attn_out.size(); l++) {
    EXPECT_LE(errors.attn_out[l], errors.attn_out_atol[l]) << "layer " << l;
  }
  EXPECT_TRUE(errors.ok());
}

TEST(DeviceOracles, AttentionKindsAreWithinTheBoundOfBf16) {
  IHA_REQUIRE_CASES(cases);
  size_t ran = 0;
  for (const std::string& folder : Folders(cases + "/attention_oracles")) {
    const auto errors = Check(folder);
    ASSERT_TRUE(errors.ok()) << errors.status();
    ExpectWithinBounds(folder, *errors);
    ran++;
  }
  EXPECT_GE(ran, 47u);
}

TEST(DeviceOracles, FamiliesAreWithinTheBoundOfBf16) {
  IHA_REQUIRE_CASES(cases);
  const std::vector<std::string> folders = Folders(cases + "/hf_families");
  EXPECT_GE(folders.size(), 15u);
  for (const std::string& folder : folders) {
    const auto errors = Check(folder);
    ASSERT_TRUE(errors.ok()) << errors.status();
    ExpectWithinBounds(folder, *errors);
  }
}

// Of talking heads, by hand: two heads of one score variance each, mixed.
TEST(Bf16Errors, TalkingHeadsMixScoresAndErrors) {
  iha::testing::TempDir directory;
  const std::string config = R"({"model_type": "llama", "vocab_size": 8, "hidden_size": 8, "intermediate_size": 8,
      "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 2,
      "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "iha_eval": {"version": 1, "mlp": "gated",
      "pattern": "repeat", "attention": [{"kind": )";
  const auto variance = [&](const std::string& kind) {
    EXPECT_TRUE(testing::WriteTinyCheckpoint(directory.path(), config + kind + "}]}}").ok());
    const auto checkpoint = checkpoint::Checkpoint::Open(directory.path());
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    const auto read = [&](const char* name) {
      std::vector<float> values(name[0] == 'p' ? 4 : 32);
      const std::string at = name[0] == 'p' ? "talking_heads." : "";
      EXPECT_TRUE(checkpoint::WidenToF32(*checkpoint->Tensor("model.layers.0.self_attn." + at + name), values).ok());
      return std::vector<double>(values.begin(), values.end());
    };
    const auto g = [&] {
      std::vector<float> values(8);
      EXPECT_TRUE(checkpoint::WidenToF32(*checkpoint->Tensor("model.layers.0.input_layernorm.weight"), values).ok());
      return values;
    }();
    const auto square = [&](const std::vector<double>& w, size_t head) {
      double sum = 0;
      for (size_t i = head * 16; i < head * 16 + 16; i++) sum += std::pow(w[i] * static_cast<double>(g[i % 8]), 2);
      return sum;
    };
    const auto q = read("q_proj.weight"), k = read("k_proj.weight"), pre = read("pre"), post = read("post");
    double mixed = 0, gain = 0;
    for (size_t b = 0; b < 2; b++) {
      for (size_t a = 0; a < 2; a++) mixed += pre[a * 2 + b] * pre[a * 2 + b] * square(q, a) * square(k, a) / 4;
      const double squares = post[b] * post[b] + post[2 + b] * post[2 + b], sum = post[b] + post[2 + b];
      gain += squares / (squares / 2 + sum * sum / 2);
    }
    const auto variances = ScoreVariances(*checkpoint);
    EXPECT_TRUE(variances.ok()) << variances.status();
    const double want = mixed / 2 * gain / 2;  // the scale is 1 / sqrt(2): 1/2 / 2 of the products
    EXPECT_NEAR((*variances)[0], want, 1e-6 * want);
  };
  variance(R"("talking_heads", "rope_pairing": "half", "window": null, "qk_norm": "none")");
}

// Two layers with all that a plain one has, counted by hand from the table of the contract.
TEST(Bf16Errors, CountRoundings) {
  checkpoint::ModelConfig config;
  config.embedding_scale = 1;
  config.layers.resize(2);
  const double unit = 0x1p-16 / 3;
  const double stream0 = 1;
  // V = 1 + 4, Q = 1 + 5; scores of variance 2, then 3: V + 2 2 Q + 2, then o_proj 2.
  const double attn0 = 5 + 4 * 6 + 2 + 2;
  const double stream1 = stream0 / 2 + attn0 / 2 + 1;
  const double mlp0 = 2 * (stream1 + 4) + 1 + 2;
  const double stream2 = stream1 * 2 / 3 + mlp0 / 3 + 1;
  const double attn1 = (stream2 + 4) + 6 * (stream2 + 5) + 2 + 2;
  const Bf16Errors errors = Bf16ErrorsOf(config, std::vector<double>{2, 3});
  ASSERT_EQ(errors.attn_out.size(), 2u);
  EXPECT_NEAR(errors.attn_out[0], std::sqrt(attn0 * unit), 1e-12);
  EXPECT_NEAR(errors.attn_out[1], std::sqrt(attn1 * unit), 1e-12);
  const double stream3 = stream2 * 3 / 4 + attn1 / 4 + 1;
  const double stream4 = stream3 * 4 / 5 + (2 * (stream3 + 4) + 3) / 5 + 1;
  EXPECT_NEAR(errors.logits, std::sqrt((stream4 + 3) * unit), 1e-12);
  const std::vector<double> expected = {3, -4, 0, 0};
  EXPECT_DOUBLE_EQ(Bf16Bound(0.5, expected), 6 * 0.5 * 2.5);
  EXPECT_EQ(Bf16Bound(0.5, {}), 0);
}

// Whatever a layer does more has errors of its own.
TEST(Bf16Errors, GrowWithWhatALayerDoes) {
  checkpoint::ModelConfig config;
  config.layers.resize(1);
  const double plain = Bf16ErrorsOf(config, std::vector<double>{1}).attn_out[0];
  const auto with = [&](const auto& change) {
    checkpoint::ModelConfig changed = config;
    change(changed, changed.layers[0]);
    return Bf16ErrorsOf(changed, std::vector<double>{1}).attn_out[0];
  };
  using checkpoint::LayerSpec;
  using checkpoint::ModelConfig;
  EXPECT_GT(with([](ModelConfig& c, LayerSpec&) { c.qkv_bias = true; }), plain);
  EXPECT_GT(with([](ModelConfig& c, LayerSpec&) { c.o_bias = true; }), plain);
  EXPECT_GT(with([](ModelConfig&, LayerSpec& l) { l.qk_norm = checkpoint::QkNorm::kPreRope; }), plain);
  EXPECT_GT(with([](ModelConfig&, LayerSpec& l) { l.kind = checkpoint::AttentionKind::kIha; }), plain);
  const auto iha = [&](checkpoint::QkNorm norm, checkpoint::Xsa xsa, checkpoint::CollapseKind collapse) {
    return with([&](ModelConfig&, LayerSpec& l) {
      l.kind = checkpoint::AttentionKind::kIha;
      l.qk_norm = norm;
      l.xsa = xsa;
      l.collapse = collapse;
    });
  };
  using checkpoint::CollapseKind;
  using checkpoint::QkNorm;
  using checkpoint::Xsa;
  EXPECT_GT(iha(QkNorm::kPreMix, Xsa::kOff, CollapseKind::kGlobal),
            iha(QkNorm::kPostMix, Xsa::kOff, CollapseKind::kGlobal));  // one pass, rounded once
  EXPECT_GT(iha(QkNorm::kPreMix, Xsa::kPseudo, CollapseKind::kGlobal),
            iha(QkNorm::kPreMix, Xsa::kPseudo, CollapseKind::kPerHead));  // rows are rounded for the mma
  EXPECT_GT(with([](ModelConfig&, LayerSpec& l) { l.kind = checkpoint::AttentionKind::kDiffV2; }), plain);
  EXPECT_GT(with([](ModelConfig&, LayerSpec& l) { l.kind = checkpoint::AttentionKind::kDiff; }), plain);
  EXPECT_GT(with([](ModelConfig&, LayerSpec& l) { l.xsa = checkpoint::Xsa::kOutput; }), plain);
  EXPECT_GT(with([](ModelConfig&, LayerSpec& l) { l.gate = checkpoint::Gate::kHeadwise; }), plain);
  EXPECT_GT(with([](ModelConfig&, LayerSpec& l) { l.knocking = checkpoint::Knocking::kMlp; }), plain);
}

// Of tiny weights by hand: q and k are x times a head's one row.
TEST(Bf16Errors, ScoresVaryAsTheWeightsSay) {
  iha::testing::TempDir directory;
  ASSERT_TRUE(testing::WriteTinyCheckpoint(directory.path(), R"({"model_type": "llama", "vocab_size": 8,
      "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
      "num_key_value_heads": 1, "head_dim": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5})")
                  .ok());
  const auto checkpoint = checkpoint::Checkpoint::Open(directory.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto read = [&](const std::string& name, size_t n) {
    std::vector<float> values(n);
    EXPECT_TRUE(checkpoint::WidenToF32(*checkpoint->Tensor("model.layers.0." + name), values).ok());
    return values;
  };
  const auto g = read("input_layernorm.weight", 8), q = read("self_attn.q_proj.weight", 32),
             k = read("self_attn.k_proj.weight", 16);
  const auto square = [&](const std::vector<float>& w, size_t first_row) {
    double sum = 0;
    for (size_t i = first_row * 8; i < (first_row + 2) * 8; i++) {
      sum += std::pow(static_cast<double>(w[i]) * static_cast<double>(g[i % 8]), 2);
    }
    return sum;
  };
  // scale^2 / d = 1 / 4.
  const double want = (square(q, 0) + square(q, 2)) / 2 * square(k, 0) / 4;
  const auto variances = ScoreVariances(*checkpoint);
  ASSERT_TRUE(variances.ok()) << variances.status();
  ASSERT_EQ(variances->size(), 1u);
  EXPECT_NEAR((*variances)[0], want, 1e-6 * want);
}

}  // namespace
}  // namespace iha::model
