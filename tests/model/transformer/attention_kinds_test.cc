// Every kind of attention as a layer of a model: all oracles, what must change no bit, and the special cases that tie
// the kinds to each other (checkpoints.md, last section).
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/inspect.h"
#include "model/checkpoint/safetensors.h"
#include "model/oracle.h"
#include "model/transformer/cpu_backend.h"
#include "tests/kernels/kernel_test_util.h"
#include "tests/model/checkpoint/test_files.h"
#include "tests/model/transformer/runner.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"

namespace iha::model {
namespace {

using checkpoint::Checkpoint;
using nlohmann::json;
using testing::OracleOf;
using testing::Runner;
using testing::SameBits;

// Every folder that has expected values, whatever its name.
std::vector<std::string> OracleFolders(const std::string& cases) {
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(cases + "/attention_oracles")) {
    if (std::filesystem::exists(entry.path() / "expected.safetensors")) folders.push_back(entry.path().string());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::unique_ptr<Backend> Open(const std::string& folder, int threads = 1, const char* kv_dtype = "f32") {
  const auto checkpoint = Checkpoint::Open(folder);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  if (!checkpoint.ok()) return nullptr;
  auto backend = OpenCpuBackend(*checkpoint, {.threads = threads, .numerics = {.kv_dtype = kv_dtype}});
  EXPECT_TRUE(backend.ok()) << backend.status();
  return backend.ok() ? *std::move(backend) : nullptr;
}

std::vector<float> Logits(const std::string& folder, const std::vector<int32_t>& ids, size_t chunk = 0) {
  const std::unique_ptr<Backend> backend = Open(folder);
  return backend == nullptr ? std::vector<float>() : Runner(*backend, 64).Run({ids}, chunk)[0];
}

TEST(AttentionKinds, EveryOracleHoldsInEveryChunking) {
  IHA_REQUIRE_CASES(cases);
  const auto folders = OracleFolders(cases);
  ASSERT_GE(folders.size(), 40U);
  for (const std::string& folder : folders) {
    SCOPED_TRACE(folder);
    for (const size_t chunk : {0, 1, 3, 7, 64}) {
      const auto errors = CheckOracle(folder, {.threads = 2, .numerics = {}}, chunk);
      ASSERT_TRUE(errors.ok()) << errors.status();
      EXPECT_LE(errors->logits, errors->logit_atol) << "chunk " << chunk;
      for (size_t l = 0; l < errors->attn_out.size(); l++) {
        EXPECT_LE(errors->attn_out[l], errors->attn_out_atol[l]) << "layer " << l << " chunk " << chunk;
      }
      EXPECT_TRUE(errors->ok());
    }
  }
}

TEST(AttentionKinds, ChunksBatchesAndThreadsChangeNoBit) {
  IHA_REQUIRE_CASES(cases);
  for (const std::string& folder : OracleFolders(cases)) {
    const Oracle oracle = OracleOf(folder);
    const std::vector<int32_t> reversed(oracle.ids.rbegin(), oracle.ids.rend());
    for (const char* kv_dtype : {"f32", "bf16"}) {
      SCOPED_TRACE(folder + " " + kv_dtype);
      const auto backend = Open(folder, 1, kv_dtype), threaded = Open(folder, 3, kv_dtype);
      ASSERT_TRUE(backend != nullptr && threaded != nullptr);
      Runner runner(*backend, 64), threads(*threaded, 64);
      const std::vector<float> alone = runner.Run({oracle.ids}, 0)[0];
      for (const size_t chunk : {1, 3, 7, 64}) {
        EXPECT_TRUE(SameBits(runner.Run({oracle.ids}, chunk)[0], alone)) << "chunk " << chunk;
      }
      const auto together = runner.Run({reversed, {1, 2, 3}, oracle.ids, {5}, oracle.ids, reversed}, 5);
      EXPECT_TRUE(SameBits(together[2], alone));
      EXPECT_TRUE(SameBits(together[4], alone));
      EXPECT_TRUE(SameBits(threads.Run({oracle.ids}, 0)[0], alone));
      EXPECT_TRUE(SameBits(threads.Run({oracle.ids, reversed}, 7)[0], alone));
    }
  }
}

// What the engine divides its budget by is what `inspect` prints: narrow heads, whose values are padded, included.
TEST(AttentionKinds, CacheBytesAreWhatTheCostModelSays) {
  IHA_REQUIRE_CASES(cases);
  for (const std::string& folder : OracleFolders(cases)) {
    SCOPED_TRACE(folder);
    const auto checkpoint = Checkpoint::Open(folder);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const checkpoint::Inspection inspection = checkpoint::Inspect(*checkpoint, {});
    for (const auto& [kv_dtype, bytes] : {std::pair{"f32", 4}, {"bf16", 2}}) {
      const auto backend = Open(folder, 1, kv_dtype);
      ASSERT_NE(backend, nullptr);
      const ModelInfo& info = backend->info();
      const int64_t groups = static_cast<int64_t>(info.kv_windows.size());
      const int64_t want = inspection.kv_numbers * bytes * kKvBlockTokens;
      // Blocks have one size: groups may leave some of it empty.
      EXPECT_GE(info.kv_block_bytes * groups, want) << kv_dtype;
      EXPECT_LE(info.kv_block_bytes * groups, want + want / 8) << kv_dtype;
      EXPECT_TRUE(groups > 1 || info.kv_block_bytes == want) << kv_dtype;
    }
  }
}

TEST(AttentionKinds, VectorWidthChangesNoBit) {
  IHA_REQUIRE_CASES(cases);
  for (const char* name : {"talking_heads", "talking_heads_gqa_window_qknorm", "diff_depth", "diff_number_window_half",
                           "diff_v2", "global_mqa_gelu", "global_xsa_gate_headwise_gqa", "global_knocking_mlp_gqa",
                           "kinds_mixed_gqa", "kinds_mixed_mha"}) {
    const std::string folder = cases + "/attention_oracles/" + name;
    SCOPED_TRACE(name);
    const Oracle oracle = OracleOf(folder);
    const std::vector<float> want = Logits(folder, oracle.ids);
    kernels::ForEachTarget(
        [&](const kernels::SimdTarget&) { EXPECT_TRUE(SameBits(Logits(folder, oracle.ids, 50), want)); });
  }
}

// A checkpoint in memory, to be changed and written again.
struct Variant {
  struct Weights {
    std::vector<int64_t> shape;
    std::vector<float> values;
  };
  explicit Variant(const std::string& folder) {
    const auto checkpoint = Checkpoint::Open(folder);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    if (!checkpoint.ok()) return;
    config = json::parse(checkpoint::testing::ReadText(folder + "/config.json"), nullptr, false);
    for (const checkpoint::TensorSpec& spec : RequiredTensors(checkpoint->config())) {
      const auto view = checkpoint->ExpectTensor(spec.name, spec.shape);
      EXPECT_TRUE(view.ok()) << view.status();
      Weights& weights = tensors[spec.name];
      weights.shape = spec.shape;
      weights.values.resize(static_cast<size_t>(view->elements()));
      EXPECT_TRUE(WidenToF32(*view, weights.values).ok());
    }
  }
  json& Layer(size_t l) { return config["iha_eval"]["attention"][l]; }
  size_t layers() { return config["num_hidden_layers"].get<size_t>(); }
  Weights& At(size_t l, const std::string& name) {
    return tensors[fmt::format("model.layers.{}.self_attn.{}", l, name)];
  }
  void Remove(size_t l, const std::string& name) {
    tensors.erase(fmt::format("model.layers.{}.self_attn.{}", l, name));
  }
  std::vector<float> Run(const std::vector<int32_t>& ids) const {
    const iha::testing::TempDir dir;
    checkpoint::testing::WriteText(dir.File("config.json"), config.dump());
    std::vector<checkpoint::NamedTensor> named;
    for (const auto& [name, weights] : tensors) {
      named.push_back({{name, checkpoint::DType::kF32, weights.shape}, std::as_bytes(std::span(weights.values))});
    }
    const absl::Status status = WriteSafetensors(dir.File("model.safetensors"), named);
    EXPECT_TRUE(status.ok()) << status;
    return Logits(dir.path(), ids, 3);
  }

  json config;
  std::map<std::string, Weights> tensors;
};

// Two correct fp32 engines: each within the oracle's tolerance of float64.
void ExpectSameUpToRounding(const std::vector<float>& a, const std::vector<float>& b, double atol) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_FALSE(a.empty());
  EXPECT_LE(MaxAbsError(a, std::vector<double>(b.begin(), b.end())), 2 * atol);
}

const json kGlobal = {{"kind", "global"}, {"rope_pairing", "half"}, {"qk_norm", "none"}};

TEST(AttentionKinds, ZeroLambdaProjTakesHalfOfTheSecondHead) {
  IHA_REQUIRE_CASES(cases);
  const std::string folder = cases + "/attention_oracles/diff_v2";
  const Oracle oracle = OracleOf(folder);
  Variant zero(folder), global(folder);
  ASSERT_EQ(zero.Layer(0)["kind"], "diff_v2");
  for (size_t l = 0; l < zero.layers(); l++) {
    auto& lambda = zero.At(l, "diff.lambda_proj.weight").values;
    std::fill(lambda.begin(), lambda.end(), 0.0f);
    // W_o (A_2i - A_2i+1 / 2) as ordinary attention: each column of W_o for head 2i, minus half of it for 2i + 1.
    const Variant::Weights o = global.At(l, "o_proj.weight");
    const size_t d = global.config["head_dim"].get<size_t>(), columns = static_cast<size_t>(o.shape[1]);
    Variant::Weights& wide = global.At(l, "o_proj.weight");
    wide.shape[1] *= 2;
    wide.values.assign(o.values.size() * 2, 0.0f);
    for (size_t i = 0; i < o.values.size(); i++) {
      const size_t row = i / columns, pair = i % columns / d, feature = i % d;
      float* to = &wide.values[row * 2 * columns + pair * 2 * d + feature];
      to[0] = o.values[i];
      to[d] = -0.5f * o.values[i];
    }
    global.Layer(l) = kGlobal;
    global.Remove(l, "diff.lambda_proj.weight");
  }
  ExpectSameUpToRounding(zero.Run(oracle.ids), global.Run(oracle.ids), oracle.logit_atol);
}

TEST(AttentionKinds, IdentityTalkingHeadsAreGlobalAttention) {
  IHA_REQUIRE_CASES(cases);
  const std::string root = cases + "/attention_oracles/";
  const Oracle special = OracleOf(root + "special_base_global");
  ExpectSameUpToRounding(Logits(root + "special_talking_identity", special.ids, 3),
                         Logits(root + "special_base_global", special.ids), special.logit_atol);
  const Oracle oracle = OracleOf(root + "talking_heads");
  Variant identity(root + "talking_heads"), global(root + "talking_heads");
  const size_t heads = identity.config["num_attention_heads"].get<size_t>();
  for (size_t l = 0; l < identity.layers(); l++) {
    for (const char* name : {"talking_heads.pre", "talking_heads.post"}) {
      auto& mix = identity.At(l, name).values;
      for (size_t i = 0; i < mix.size(); i++) mix[i] = i / heads == i % heads ? 1.0f : 0.0f;
      global.Remove(l, name);
    }
    global.Layer(l) = kGlobal;
  }
  ExpectSameUpToRounding(identity.Run(oracle.ids), global.Run(oracle.ids), oracle.logit_atol);
  EXPECT_NE(Variant(root + "talking_heads").Run(oracle.ids), identity.Run(oracle.ids));
}

TEST(AttentionKinds, AWindowOfAllTokensChangesNoBit) {
  IHA_REQUIRE_CASES(cases);
  for (const char* name : {"talking_heads", "diff_depth", "diff_v2", "iha_p2_algorithm1", "iha_p4_equals_h_stp"}) {
    SCOPED_TRACE(name);
    const std::string folder = cases + "/attention_oracles/" + name;
    const Oracle oracle = OracleOf(folder);
    const auto tokens = static_cast<int64_t>(oracle.ids.size());
    const std::vector<float> want = Logits(folder, oracle.ids);
    Variant all(folder), some(folder), huge(folder);
    for (size_t l = 0; l < all.layers(); l++) {
      ASSERT_TRUE(all.Layer(l)["window"].is_null());
      const auto window = [&](int64_t size) -> json {
        if (all.Layer(l)["kind"] != "iha") return size;
        if (l % 2 == 0) return {{"unit", "token"}, {"size", size}};
        return {{"unit", "virtual"}, {"size", size * all.Layer(l)["pseudo_heads"].get<int64_t>()}};
      };
      all.Layer(l)["window"] = window(tokens);
      some.Layer(l)["window"] = window(tokens / 2);
      huge.Layer(l)["window"] = window((int64_t{1} << 32) + 1);  // more than the kernels' 32 bits hold
    }
    EXPECT_TRUE(SameBits(all.Run(oracle.ids), want));
    EXPECT_TRUE(SameBits(huge.Run(oracle.ids), want));
    EXPECT_NE(some.Run(oracle.ids), want);
  }
}

// RoPE tables reach 2^21 positions; token positions count each token once, whatever P is.
TEST(AttentionKinds, TokenPositionsReachAsFarAsTheTables) {
  IHA_REQUIRE_CASES(cases);
  const std::string folder = cases + "/attention_oracles/iha_p2_flat_token_rope";
  const Oracle oracle = OracleOf(folder);
  Variant longest(folder);
  longest.config["max_position_embeddings"] = int64_t{1} << 21;
  EXPECT_TRUE(SameBits(longest.Run(oracle.ids), Logits(folder, oracle.ids)));
}

TEST(AttentionKinds, AlphaLayoutsAreTransposes) {
  IHA_REQUIRE_CASES(cases);
  for (const char* name : {"iha_p4_equals_h_stp", "iha_p2_algorithm1", "iha_h20_p20"}) {
    SCOPED_TRACE(name);
    const std::string folder = cases + "/attention_oracles/" + name;
    const Oracle oracle = OracleOf(folder);
    Variant other(folder);
    for (size_t l = 0; l < other.layers(); l++) {
      ASSERT_EQ(other.Layer(l)["alpha_layout"], "source_target_pseudo");
      other.Layer(l)["alpha_layout"] = "target_pseudo_source";
      const auto heads = static_cast<size_t>(other.At(l, "iha.alpha_q").shape[0]);
      const auto pseudo = static_cast<size_t>(other.At(l, "iha.alpha_q").shape[2]);
      for (const char* tensor : {"iha.alpha_q", "iha.alpha_k", "iha.alpha_v"}) {
        Variant::Weights& alpha = other.At(l, tensor);
        const std::vector<float> from = alpha.values;  // [m, h, j] to [h, j, m]
        alpha.shape = {alpha.shape[0], alpha.shape[2], alpha.shape[0]};
        for (size_t i = 0; i < from.size(); i++) {
          const size_t m = i / (heads * pseudo), h = i / pseudo % heads, j = i % pseudo;
          alpha.values[(h * pseudo + j) * heads + m] = from[i];
        }
      }
    }
    EXPECT_TRUE(SameBits(other.Run(oracle.ids), Logits(folder, oracle.ids)));
  }
}

}  // namespace
}  // namespace iha::model
