#include "model/checkpoint/upcycle.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "model/checkpoint/config_json.h"
#include "model/checkpoint/temporary_folder.h"
#include "tests/model/checkpoint/random_checkpoint.h"
#include "tests/model/checkpoint/tensor_values.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"

namespace iha::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ReadText;
using testing::Values;
using testing::WriteRandomCheckpoint;
using testing::WriteText;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

// 3 layers; 4 heads of 4, `kv` of keys; more fields by `more`.
std::string Config(const std::string& type, int kv, const std::string& more = "") {
  return fmt::format(
      R"({{"model_type": "{}", "vocab_size": 11, "hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 3,
      "num_attention_heads": 4, "num_key_value_heads": {}, "head_dim": 4, "max_position_embeddings": 64{}}})",
      type, kv, more);
}

class UpcycleTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return dir_.path() + "/" + name; }

  Checkpoint Make(const std::string& source, const std::string& out, const UpcycleOptions& options) {
    const auto result = Upcycle(Path(source), Path(out), options);
    EXPECT_TRUE(result.ok()) << result.status();
    auto checkpoint = Checkpoint::Open(Path(out));
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_TRUE(checkpoint->warnings().empty()) << checkpoint->warnings().front();
    EXPECT_EQ(checkpoint->WeightsDigest(), result->digest);
    return *std::move(checkpoint);
  }
  absl::Status Refused(const std::string& source, const UpcycleOptions& options) {
    const auto result = Upcycle(Path(source), Path("refused"), options);
    EXPECT_FALSE(fs::exists(Path("refused")));
    return result.status();
  }
  // Nothing but these lies in the folder of the test.
  void ExpectEntries(std::vector<std::string> names) const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(dir_.path())) found.push_back(entry.path().filename().string());
    EXPECT_THAT(found, ::testing::UnorderedElementsAreArray(names));
  }

  iha::testing::TempDir dir_;
};

TEST_F(UpcycleTest, MixersAreTheIdentityAndWeightsAreCopied) {
  WriteRandomCheckpoint(Path("source"), Config("llama", 4), DType::kBF16);
  WriteText(Path("source/tokenizer.json"), "{}");
  WriteText(Path("source/generation_config.json"), "{\"eos_token_id\": [7, 8]}");
  const auto source = Checkpoint::Open(Path("source"));
  ASSERT_TRUE(source.ok()) << source.status();
  const Checkpoint result = Make("source", "out", {.pseudo_heads = 2});
  for (const auto& [name, view] : source->tensors()) {
    const auto copy = result.Tensor(name);
    ASSERT_TRUE(copy.ok()) << copy.status();
    EXPECT_EQ(copy->dtype, DType::kBF16);
    EXPECT_TRUE(std::equal(view.bytes.begin(), view.bytes.end(), copy->bytes.begin(), copy->bytes.end())) << name;
  }
  for (const char* part : {"q", "k", "v"}) {
    const std::vector<float> alpha = Values(result, fmt::format("model.layers.2.self_attn.iha.alpha_{}", part));
    ASSERT_EQ(alpha.size(), 4U * 4 * 2);
    for (size_t i = 0; i < alpha.size(); ++i) EXPECT_EQ(alpha[i], i / 8 == i / 2 % 4 ? 1 : 0) << part << i;
  }
  EXPECT_THAT(Values(result, "model.layers.0.self_attn.iha.collapse"), ElementsAre(.5, .5, .5, .5, .5, .5, .5, .5));
  EXPECT_EQ(ReadText(Path("out/tokenizer.json")), "{}");
  EXPECT_THAT(result.generation().eos_token_ids, ElementsAre(7, 8));
  const LayerSpec& layer = result.config().layers[1];
  EXPECT_EQ(layer.kind, AttentionKind::kIha);
  EXPECT_EQ(layer.mask, IhaMask::kTokenCausal);
  EXPECT_EQ(layer.rope_positions, IhaPositions::kToken);
  EXPECT_EQ(nlohmann::json::parse(ReadText(Path("out/upcycle.json"))),
            nlohmann::json({{"upcycle", 2},
                            {"source_digest", source->WeightsDigest().Hex()},
                            {"kind", "iha"},
                            {"pseudo_heads", 2},
                            {"layers", {0, 1, 2}},
                            {"alpha_layout", "source_target_pseudo"},
                            {"collapse", "per_head"},
                            {"expand_kv", false},
                            {"noise", 0},
                            {"seed", 0}}));
  ExpectEntries({"source", "out"});
}

TEST_F(UpcycleTest, OtherLayoutsHoldTheSameEntries) {
  WriteRandomCheckpoint(Path("source"), Config("llama", 4));
  // Thirds, so that a wrong P shows, and noise, so that every entry differs.
  const UpcycleOptions plain{.pseudo_heads = 3, .noise = 0.1, .seed = 5};
  UpcycleOptions other = plain;
  other.alpha_layout = AlphaLayout::kTargetPseudoSource;
  other.collapse = CollapseKind::kGlobal;
  const Checkpoint a = Make("source", "a", plain), b = Make("source", "b", other);
  const std::vector<float> stp = Values(a, "model.layers.1.self_attn.iha.alpha_k");
  const std::vector<float> tps = Values(b, "model.layers.1.self_attn.iha.alpha_k");
  for (size_t m = 0; m < 4; ++m) {
    for (size_t h = 0; h < 4; ++h) {
      for (size_t j = 0; j < 3; ++j) EXPECT_EQ(stp[(m * 4 + h) * 3 + j], tps[(h * 3 + j) * 4 + m]);
    }
  }
  const std::vector<float> own = Values(a, "model.layers.1.self_attn.iha.collapse");
  const std::vector<float> all = Values(b, "model.layers.1.self_attn.iha.collapse");
  ASSERT_EQ(all.size(), 4U * 4 * 3);
  for (size_t h = 0; h < 4; ++h) {
    for (size_t j = 0; j < 3; ++j) EXPECT_EQ(all[h * 12 + h * 3 + j], own[h * 3 + j]);
  }
}

TEST_F(UpcycleTest, NoiseHasItsSizeAndItsSeed) {
  WriteRandomCheckpoint(Path("source"), Config("llama", 4));
  const UpcycleOptions options{.pseudo_heads = 64, .noise = 0.5, .seed = 1};
  const Checkpoint one = Make("source", "one", options), again = Make("source", "again", options);
  EXPECT_EQ(ReadText(Path("one/model.safetensors")), ReadText(Path("again/model.safetensors")));
  UpcycleOptions other = options;
  other.seed = 2;
  EXPECT_NE(Make("source", "two", other).WeightsDigest(), one.WeightsDigest());
  double sum = 0, squares = 0, count = 0;
  for (int layer = 0; layer < 3; ++layer) {
    for (const char* part : {"q", "k", "v"}) {
      const std::vector<float> alpha = Values(one, fmt::format("model.layers.{}.self_attn.iha.alpha_{}", layer, part));
      for (size_t i = 0; i < alpha.size(); ++i) {
        const double z = (alpha[i] - (i / 256 == i / 64 % 4 ? 1 : 0)) / 0.5;
        sum += z, squares += z * z, ++count;
        EXPECT_LE(std::abs(z), 6);
      }
    }
  }
  // 9216 independent values: the mean's deviation is 1 / 96, the variance's (kurtosis 2.9) 1.38 / 96; six of each.
  EXPECT_NEAR(sum / count, 0, 6 / 96.0);
  EXPECT_NEAR(squares / count, 1, 6 * 1.38 / 96);
}

TEST_F(UpcycleTest, ExpandKvRepeatsEachHeadForItsGroup) {
  WriteRandomCheckpoint(Path("source"), Config("llama", 2, R"(, "attention_bias": true)"));
  EXPECT_EQ(Refused("source", {.pseudo_heads = 2}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(Refused("source", {.pseudo_heads = 2})),
              HasSubstr("source: config.json: num_key_value_heads is 2, but kind iha needs as many as "
                        "num_attention_heads 4: add --expand-kv, which repeats each key and value head 2 times"));
  const auto source = Checkpoint::Open(Path("source"));
  ASSERT_TRUE(source.ok()) << source.status();
  const Checkpoint result = Make("source", "out", {.pseudo_heads = 1, .expand_kv = true});
  EXPECT_EQ(result.config().num_kv_heads, 4);
  for (const char* name : {"k_proj.weight", "v_proj.weight", "k_proj.bias", "v_proj.bias"}) {
    const std::string full = fmt::format("model.layers.1.self_attn.{}", name);
    const std::vector<float> from = Values(*source, full), to = Values(result, full);
    ASSERT_EQ(to.size(), 2 * from.size());
    const size_t head = from.size() / 2;
    for (size_t i = 0; i < to.size(); ++i) EXPECT_EQ(to[i], from[i / (2 * head) * head + i % head]) << name << i;
  }
}

TEST_F(UpcycleTest, ShardsStayAsTheyAre) {
  WriteRandomCheckpoint(Path("source"), Config("llama", 4), DType::kF32, 3);
  const auto source = Checkpoint::Open(Path("source"));
  ASSERT_TRUE(source.ok()) << source.status();
  const Checkpoint result = Make("source", "out", {.pseudo_heads = 2});
  ASSERT_EQ(result.files().size(), 3U);
  const auto file = [](const Checkpoint& checkpoint, const std::string& tensor) {
    return fs::path(checkpoint.files()[checkpoint.FileOf(tensor)].path()).filename();
  };
  for (const auto& [name, view] : source->tensors()) EXPECT_EQ(file(*source, name), file(result, name)) << name;
  EXPECT_EQ(file(result, "model.layers.1.self_attn.iha.collapse"),
            file(*source, "model.layers.1.self_attn.q_proj.weight"));
  EXPECT_FALSE(fs::exists(Path("out/model.safetensors")));
}

TEST_F(UpcycleTest, OnlyTheChosenLayers) {
  WriteRandomCheckpoint(Path("source"), Config("llama", 4));
  const Checkpoint result = Make("source", "out", {.pseudo_heads = 2, .layers = std::vector<int64_t>{0, 2}});
  EXPECT_EQ(result.config().layers[0].kind, AttentionKind::kIha);
  EXPECT_EQ(result.config().layers[1].kind, AttentionKind::kGlobal);
  EXPECT_THAT(Message(Refused("source", {.layers = std::vector<int64_t>{3}})),
              HasSubstr("names layer 3, expected 0 to 2"));
  // What is iha already cannot become it.
  const auto again = Upcycle(Path("out"), Path("twice"), {.pseudo_heads = 2});
  EXPECT_THAT(Message(again.status()), HasSubstr("layer 0 is iha, expected global or local"));
  Make("out", "rest", {.pseudo_heads = 2, .layers = std::vector<int64_t>{1}});
}

TEST_F(UpcycleTest, WhatTheFamiliesAddIsKept) {
  WriteRandomCheckpoint(Path("mistral"), Config("mistral", 4, R"(, "sliding_window": 9)"));
  const Checkpoint mistral = Make("mistral", "mistral-iha", {.pseudo_heads = 2});
  EXPECT_EQ(mistral.config().layers[0].window, (Window{WindowUnit::kToken, 9}));

  WriteRandomCheckpoint(Path("qwen2"), Config("qwen2", 4, R"(, "rope_scaling": {"rope_type": "yarn", "factor": 4.0})"));
  const Checkpoint qwen2 = Make("qwen2", "qwen2-iha", {.pseudo_heads = 2});
  EXPECT_TRUE(qwen2.config().o_bias);
  EXPECT_THAT(Values(qwen2, "model.layers.0.self_attn.o_proj.bias"), ::testing::Each(0.0f));
  EXPECT_EQ(qwen2.config().ropes[0].scaling, RopeScaling::kYarn);
  EXPECT_EQ(qwen2.config().ropes[0].attention_factor, 0.1 * std::log(4.0) + 1);  // as transformers computes it

  WriteRandomCheckpoint(Path("qwen3"), Config("qwen3", 4));
  const Checkpoint qwen3 = Make("qwen3", "qwen3-iha", {.pseudo_heads = 2, .layers = std::vector<int64_t>{0}});
  EXPECT_EQ(qwen3.config().layers[0].qk_norm, QkNorm::kPreMix);
  EXPECT_EQ(qwen3.config().layers[1].qk_norm, QkNorm::kPreRope);

  WriteRandomCheckpoint(Path("gemma"), Config("gemma3_text", 4));
  EXPECT_THAT(Message(Refused("gemma", {.pseudo_heads = 2})), HasSubstr("model_type is gemma3_text"));
}

TEST_F(UpcycleTest, NothingIsOverwrittenOrHalfWritten) {
  WriteRandomCheckpoint(Path("source"), Config("llama", 4));
  WriteText(Path("file"), "x");
  fs::create_directory(Path("full"));
  WriteText(Path("full/x"), "x");
  fs::create_directory_symlink(Path("nowhere"), Path("link"));
  for (const char* taken : {"file", "full", "full/", "link", "source"}) {
    const auto result = Upcycle(Path("source"), Path(taken), {});
    EXPECT_EQ(result.status().code(), absl::StatusCode::kAlreadyExists) << taken;
    EXPECT_THAT(Message(result.status()), HasSubstr("exists already: remove it or choose another --out"));
  }
  EXPECT_EQ(Refused("absent", {}).code(), absl::StatusCode::kNotFound);
  for (const double noise : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(Message(Refused("source", {.noise = noise})), HasSubstr("expected a number from 0"));
  }
  EXPECT_THAT(Message(Refused("source", {.pseudo_heads = 0})), HasSubstr("expected 1 to 4096"));
  fs::create_directory(Path("empty"));
  Make("source", "empty", {});

  // A disk that is full after half of the weights: the limit on file sizes gives the same kind of failed write.
  struct rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const struct rlimit half = {fs::file_size(Path("source/model.safetensors")) / 2, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &half), 0);
  const absl::Status status = Refused("source", {});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_THAT(Message(status), HasSubstr("cannot write (nothing was left behind)"));
  ExpectEntries({"source", "file", "full", "link", "empty"});
}

// Tensors of another kind beside a plain config: what the config never reads is no part of the function.
TEST_F(UpcycleTest, TensorsThatTheConfigDoesNotReadStayBehind) {
  WriteRandomCheckpoint(Path("source"), Config("llama", 4));
  const Digest plain = Make("source", "plain", {.pseudo_heads = 2}).WeightsDigest();
  Make("source", "stray", {.pseudo_heads = 2, .noise = 0.5, .seed = 3});
  fs::copy_file(Path("source/config.json"), Path("stray/config.json"), fs::copy_options::overwrite_existing);
  for (const int64_t pseudo : {2, 3}) {
    const std::string out = fmt::format("out{}", pseudo);
    const Checkpoint result = Make("stray", out, {.pseudo_heads = pseudo});
    EXPECT_EQ(result.WeightsDigest() == plain, pseudo == 2);
  }
}

TEST_F(UpcycleTest, TheFolderOfACrashIsRemovedAndNotAdopted) {
  WriteRandomCheckpoint(Path("source"), Config("llama", 4));
  char host[256] = {};
  ASSERT_EQ(::gethostname(host, sizeof(host) - 1), 0);
  const std::string prefix = fmt::format("out.tmp.{}.", host);
  // A container's next run has the same PID. Another process' folder is told by its lock, not by its number.
  const std::string same = fmt::format("{}{}", prefix, ::getpid()), others = prefix + "1", alive = prefix + "2.1";
  const std::vector<std::string> kept = {alive, "out.tmp.elsewhere.3", prefix + "3x",
                                         fmt::format("out2.tmp.{}.3", host)};
  for (const std::string& name : {same, others, kept[0], kept[1], kept[2], kept[3]}) {
    fs::create_directory(Path(name));
    WriteText(Path(name + "/added_tokens.json"), "{}");
  }
  const int lock = ::open(Path(alive).c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(lock, LOCK_EX | LOCK_NB), 0);
  Make("source", "out", {.pseudo_heads = 2});
  EXPECT_FALSE(fs::exists(Path("out/added_tokens.json")));
  ExpectEntries({"source", "out", kept[0], kept[1], kept[2], kept[3]});
  ::close(lock);
  EXPECT_THAT(Message(Upcycle(Path("source"), "", {}).status()), HasSubstr("name is empty"));
}

TEST_F(UpcycleTest, AFolderInTheMakingIsLocked) {
  auto first = TemporaryFolder::Create(Path("out")), second = TemporaryFolder::Create(Path("out"));
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_NE(first->path(), second->path());
  EXPECT_TRUE(fs::exists(first->path()) && fs::exists(second->path()));
  WriteText(first->path() + "/file", "1");
  ASSERT_TRUE(first->Commit().ok());
  EXPECT_EQ(ReadText(Path("out/file")), "1");
  EXPECT_THAT(Message(second->Commit()), HasSubstr("something else made it meanwhile"));
}

// The config that is written says the function that was read, for all that a Llama config can say.
TEST(LlamaConfigJsonTest, RoundTripsEveryCase) {
  IHA_REQUIRE_CASES(cases);
  int count = 0;
  for (const char* group : {"attention_oracles", "hf_families"}) {
    for (const auto& entry : fs::directory_iterator(cases + "/" + group)) {
      if (!fs::exists(entry.path() / "config.json")) continue;
      const auto config = ParseModelConfig(ReadText(entry.path() / "config.json"));
      ASSERT_TRUE(config.ok()) << config.status();
      if (config->family != Family::kLlama) continue;
      const auto text = LlamaConfigJson(*config);
      ASSERT_TRUE(text.ok()) << text.status();
      const auto again = ParseModelConfig(*text);
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_EQ(again->FunctionBytes(), config->FunctionBytes()) << entry.path();
      EXPECT_EQ(again->eos_token_ids, config->eos_token_ids);
      EXPECT_EQ(again->bos_token_id, config->bos_token_id);
      EXPECT_TRUE(again->warnings.empty());
      ++count;
    }
  }
  EXPECT_GE(count, 47 + 14);
}

}  // namespace
}  // namespace iha::checkpoint
