// Import of the architectures besides llama, and of SentencePiece vocabularies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/gguf/architectures.h"
#include "model/checkpoint/gguf/import.h"
#include "model/checkpoint/gguf/tokenizer_pipelines.h"
#include "tests/model/checkpoint/gguf_builder.h"
#include "tests/model/checkpoint/tensor_values.h"
#include "tests/model/checkpoint/test_files.h"
#include "tests/support/temp_dir.h"

namespace iha::checkpoint {
namespace {

using nlohmann::json;
using testing::GgufBuilder;
using ::testing::HasSubstr;
using testing::ReadText;
using testing::Values;
using testing::WriteText;

constexpr uint32_t kHidden = 32, kInner = 64, kHeads = 2, kHeadDim = 24;  // head_dim is not hidden / heads
const std::vector<std::string> kTokens = {"<unk>",
                                          "<s>",
                                          "</s>",
                                          "\xe2\x96\x81",
                                          "a",
                                          "\xe2\x96\x81"
                                          "a",
                                          "  ",
                                          "<t>"};

GgufBuilder Keys(const std::string& name, uint32_t layers = 1) {
  GgufBuilder file;
  file.Text("general.architecture", name).U32(name + ".block_count", layers).U32(name + ".context_length", 64);
  file.U32(name + ".embedding_length", kHidden).U32(name + ".feed_forward_length", kInner);
  file.U32(name + ".attention.head_count", kHeads).U32(name + ".attention.head_count_kv", 1);
  file.U32(name + ".attention.key_length", kHeadDim).U32(name + ".attention.value_length", kHeadDim);
  file.F32(name + ".attention.layer_norm_rms_epsilon", 1e-6F);
  return file;
}

GgufBuilder& SentencePiece(GgufBuilder& file) {
  file.Text("tokenizer.ggml.model", "llama").Texts("tokenizer.ggml.tokens", kTokens);
  file.I32s("tokenizer.ggml.token_type", {2, 3, 3, 1, 1, 1, 4, 4});
  file.F32s("tokenizer.ggml.scores", {0, 0, 0, -1, -2, -3, -1000, 0});
  file.U32("tokenizer.ggml.bos_token_id", 1).U32("tokenizer.ggml.eos_token_id", 2);
  return file.U32("tokenizer.ggml.unknown_token_id", 0);
}

// Value 1 + r + c / 64 at (r, c).
std::vector<float> Coordinates(uint64_t rows, uint64_t columns) {
  std::vector<float> values(rows * columns);
  for (uint64_t i = 0; i < values.size(); ++i) {
    values[i] = 1.0F + static_cast<float>(i / columns) + static_cast<float>(i % columns) / 64;
  }
  return values;
}

GgufBuilder& Weights(GgufBuilder& file, const std::vector<std::string>& norms, bool biases, int layers = 1) {
  const auto add = [&file](const std::string& name, uint64_t rows, uint64_t columns) {
    if (columns == 0) {
      file.FloatTensor(name, {rows}, Coordinates(1, rows));
    } else {
      file.FloatTensor(name, {rows, columns}, Coordinates(rows, columns));
    }
  };
  add("token_embd.weight", kTokens.size(), kHidden);
  add("output_norm.weight", kHidden, 0);
  for (int layer = 0; layer < layers; ++layer) {
    const std::string block = "blk." + std::to_string(layer) + ".";
    for (const std::string& norm : norms) {
      const bool of_head = norm == "attn_q_norm" || norm == "attn_k_norm";
      add(block + norm + ".weight", of_head ? kHeadDim : kHidden, 0);
    }
    for (const auto& [name, rows] :
         {std::pair{"attn_q", kHeads * kHeadDim}, {"attn_k", kHeadDim}, {"attn_v", kHeadDim}}) {
      add(block + name + ".weight", rows, kHidden);
      if (biases) add(block + name + ".bias", rows, 0);
    }
    add(block + "attn_output.weight", kHidden, kHeads * kHeadDim);
    add(block + "ffn_gate.weight", kInner, kHidden);
    add(block + "ffn_up.weight", kInner, kHidden);
    add(block + "ffn_down.weight", kHidden, kInner);
  }
  return file;
}

const std::vector<std::string> kPlain = {"attn_norm", "ffn_norm"};
const std::vector<std::string> kWithHeadNorms = {"attn_norm", "ffn_norm", "attn_q_norm", "attn_k_norm"};
const std::vector<std::string> kGemma = {"attn_norm",   "ffn_norm",      "attn_q_norm",
                                         "attn_k_norm", "post_ffw_norm", "post_attention_norm"};

class GgufFamiliesTest : public ::testing::Test {
 protected:
  void Import(GgufBuilder& file) {
    WriteText(dir_.File("model.gguf"), file.Build());
    const auto result = ImportGguf(dir_.File("model.gguf"), dir_.File("out"), DType::kF32);
    ASSERT_TRUE(result.ok()) << result.status();
    const auto checkpoint = Checkpoint::Open(dir_.File("out"));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_THAT(checkpoint->warnings(), ::testing::IsEmpty());
  }
  std::string Refusal(GgufBuilder& file) {
    WriteText(dir_.File("model.gguf"), file.Build());
    const auto result = ImportGguf(dir_.File("model.gguf"), dir_.File("out"), DType::kF32);
    return std::string(result.status().message());
  }
  json Json(const std::string& name) const { return json::parse(ReadText(dir_.File("out/" + name))); }
  iha::testing::TempDir dir_;
};

TEST_F(GgufFamiliesTest, Qwen2KeepsItsRowsAndHasBiases) {
  GgufBuilder file = Keys("qwen2");
  file.F32("qwen2.rope.freq_base", 1000000.0F).Text("qwen2.rope.scaling.type", "yarn");
  file.F32("qwen2.rope.scaling.factor", 4.0F).U32("qwen2.rope.scaling.original_context_length", 16);
  Import(Weights(SentencePiece(file), kPlain, true));
  const auto checkpoint = Checkpoint::Open(dir_.File("out"));
  EXPECT_EQ(checkpoint->config().family, Family::kQwen2);
  EXPECT_EQ(Values(*checkpoint, "model.layers.0.self_attn.q_proj.weight"), Coordinates(kHeads * kHeadDim, kHidden));
  EXPECT_EQ(Values(*checkpoint, "model.layers.0.self_attn.k_proj.bias"), Coordinates(1, kHeadDim));
  const json config = Json("config.json");
  EXPECT_EQ(config["rope_scaling"],
            json({{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 16}}));
  EXPECT_EQ(config["rope_theta"], 1000000.0);
}

TEST_F(GgufFamiliesTest, Qwen3HasHeadNorms) {
  GgufBuilder file = Keys("qwen3");
  Import(Weights(SentencePiece(file), kWithHeadNorms, false));
  const auto checkpoint = Checkpoint::Open(dir_.File("out"));
  EXPECT_EQ(checkpoint->config().family, Family::kQwen3);
  EXPECT_EQ(Values(*checkpoint, "model.layers.0.self_attn.q_norm.weight"), Coordinates(1, kHeadDim));
  EXPECT_EQ(Values(*checkpoint, "model.layers.0.input_layernorm.weight"), Coordinates(1, kHidden));
}

TEST_F(GgufFamiliesTest, GemmaNormsLoseTheOneAndLayersSlideByThePattern) {
  GgufBuilder file = Keys("gemma3", 4);
  file.U32("gemma3.attention.sliding_window", 5).U32("gemma3.attention.sliding_window_pattern", 2);
  file.F32("gemma3.rope.freq_base", 500000.0F).F32("gemma3.rope.freq_base_swa", 20000.0F);
  file.Text("gemma3.rope.scaling.type", "linear").F32("gemma3.rope.scaling.factor", 8.0F);
  Import(Weights(SentencePiece(file), kGemma, false, 4));
  const auto checkpoint = Checkpoint::Open(dir_.File("out"));
  EXPECT_EQ(checkpoint->config().family, Family::kGemma3Text);
  std::vector<float> expected = Coordinates(1, kHidden);
  for (float& value : expected) value -= 1.0F;
  for (const char* norm :
       {"model.norm.weight", "model.layers.3.input_layernorm.weight", "model.layers.3.post_attention_layernorm.weight",
        "model.layers.0.pre_feedforward_layernorm.weight", "model.layers.0.post_feedforward_layernorm.weight"}) {
    EXPECT_EQ(Values(*checkpoint, norm), expected) << norm;
  }
  expected.resize(kHeadDim);
  EXPECT_EQ(Values(*checkpoint, "model.layers.1.self_attn.k_norm.weight"), expected);
  EXPECT_EQ(Values(*checkpoint, "model.layers.1.self_attn.k_proj.weight"), Coordinates(kHeadDim, kHidden));
  const json config = Json("config.json");
  EXPECT_EQ(config["layer_types"],
            json({"sliding_attention", "full_attention", "sliding_attention", "full_attention"}));
  EXPECT_EQ(config["sliding_window"], 5);
  EXPECT_EQ(config["query_pre_attn_scalar"], 24.0);
  EXPECT_EQ(config["rope_local_base_freq"], 20000.0);
  EXPECT_EQ(config["rope_scaling"]["factor"], 8.0);
  EXPECT_EQ(config["hidden_activation"], "gelu_pytorch_tanh");
}

TEST_F(GgufFamiliesTest, GemmaTokenizer) {
  GgufBuilder file = Keys("gemma3");
  file.U32("gemma3.attention.sliding_window", 5);
  Import(Weights(SentencePiece(file), kGemma, false));
  const json tokenizer = Json("tokenizer.json");
  EXPECT_EQ(tokenizer["normalizer"]["type"], "Replace");
  EXPECT_EQ(tokenizer["pre_tokenizer"]["behavior"], "MergedWithPrevious");
  EXPECT_EQ(tokenizer["decoder"]["decoders"].size(), 3U);
  EXPECT_EQ(tokenizer["model"]["vocab"]["\xe2\x96\x81\xe2\x96\x81"], 6);  // the run of spaces, respelled
  EXPECT_EQ(tokenizer["model"]["byte_fallback"], true);
  // In token order, not in that of the scores; "<t>" stays whole, the respelled run is no added token.
  EXPECT_EQ(tokenizer["model"]["merges"],
            json::array({json::array({"\xe2\x96\x81", "a"}), json::array({"\xe2\x96\x81", "\xe2\x96\x81"})}));
  ASSERT_EQ(tokenizer["added_tokens"].size(), 4U);
  EXPECT_EQ(tokenizer["added_tokens"][3]["content"], "<t>");
  EXPECT_EQ(tokenizer["added_tokens"][3]["special"], false);
  EXPECT_EQ(tokenizer["post_processor"]["single"][0]["SpecialToken"]["id"], "<s>");  // no flag: BOS
}

TEST_F(GgufFamiliesTest, SentencePieceFlags) {
  GgufBuilder file = Keys("qwen2");
  file.Bool("tokenizer.ggml.add_space_prefix", false).Bool("tokenizer.ggml.add_bos_token", false);
  file.Bool("tokenizer.ggml.add_eos_token", true);
  Import(Weights(SentencePiece(file), kPlain, true));
  const json tokenizer = Json("tokenizer.json");
  EXPECT_EQ(tokenizer["pre_tokenizer"]["prepend_scheme"], "never");
  EXPECT_EQ(tokenizer["decoder"]["decoders"].size(), 3U);  // no space to strip
  EXPECT_EQ(tokenizer["post_processor"]["single"].size(), 2U);
  EXPECT_EQ(tokenizer["post_processor"]["single"][1]["SpecialToken"]["id"], "</s>");
  EXPECT_EQ(tokenizer["model"]["unk_token"], "<unk>");
}

// llama.cpp's converter: float32 divisors of the frequencies, from the settings that all Llama 3.x files have.
std::vector<float> Llama3Divisors(double theta, double factor, double context) {
  std::vector<float> divisors;
  for (uint32_t i = 0; i < kHeadDim / 2; ++i) {
    const double wavelength = 2 * M_PI * std::pow(theta, 2.0 * i / kHeadDim);
    const double smooth = (context / wavelength - 1) / 3;
    divisors.push_back(static_cast<float>(wavelength < context / 4 ? 1
                                          : wavelength > context   ? factor
                                                                   : 1 / ((1 - smooth) / factor + smooth)));
  }
  return divisors;
}

TEST_F(GgufFamiliesTest, Llama3RopeIsReadFromItsDivisors) {
  GgufBuilder file = Keys("llama"), other = Keys("llama");
  file.F32("llama.rope.freq_base", 500000.0F).FloatTensor("rope_freqs.weight", {12}, Llama3Divisors(500000, 32, 8192));
  Import(Weights(SentencePiece(file), kPlain, false));
  const json config = Json("config.json");
  EXPECT_EQ(config["rope_scaling"]["rope_type"], "llama3");
  EXPECT_EQ(config["rope_scaling"]["factor"], 32.0);
  EXPECT_EQ(config["rope_scaling"]["original_max_position_embeddings"], 8192);
  EXPECT_EQ(Json("tokenizer.json")["pre_tokenizer"]["prepend_scheme"], "first");

  other.F32("llama.rope.freq_base", 500000.0F).FloatTensor("rope_freqs.weight", {12}, Llama3Divisors(500000, 32, 4096));
  EXPECT_THAT(Refusal(Weights(SentencePiece(other), kPlain, false)), HasSubstr("rope_freqs.weight is not Llama 3's"));
}

// As llama.cpp, which has the name as a default.
TEST_F(GgufFamiliesTest, AFactorWithoutATypeIsLinear) {
  for (const char* key : {"llama.rope.scaling.factor", "llama.rope.scale_linear"}) {
    GgufBuilder file = Keys("llama");
    file.F32(key, 4.0F);
    std::filesystem::remove_all(dir_.File("out"));
    Import(Weights(SentencePiece(file), kPlain, false));
    EXPECT_EQ(Json("config.json")["rope_scaling"], json({{"rope_type", "linear"}, {"factor", 4.0}}));
  }
  GgufBuilder none = Keys("llama");
  none.Text("llama.rope.scaling.type", "none").F32("llama.rope.scaling.factor", 4.0F);
  std::filesystem::remove_all(dir_.File("out"));
  Import(Weights(SentencePiece(none), kPlain, false));
  EXPECT_EQ(Json("config.json")["rope_scaling"], nullptr);
}

// Taken for absent, each would have been another model or tokenizer in silence.
TEST_F(GgufFamiliesTest, KeysOfAnotherTypeOrNotFiniteAreRefused) {
  const auto refusal = [&](auto add) {
    GgufBuilder file = Keys("llama");
    add(file);
    return Refusal(Weights(SentencePiece(file), kPlain, false));
  };
  const char* kTexts[] = {"llama.rope.scaling.type", "tokenizer.chat_template"};
  for (const char* key : kTexts) {
    EXPECT_THAT(refusal([&](GgufBuilder& file) { file.U32(key, 1); }),
                HasSubstr(fmt::format("key {} is no string", key)));
  }
  for (const char* flag : {"add_bos_token", "add_eos_token", "add_space_prefix"}) {
    const std::string key = fmt::format("tokenizer.ggml.{}", flag);
    EXPECT_THAT(refusal([&](GgufBuilder& file) { file.U32(key, 0); }),
                HasSubstr(fmt::format("key {} is no truth value", key)));
  }
  EXPECT_THAT(refusal([](GgufBuilder& file) { file.Text("tokenizer.ggml.merges", "a b"); }),
              HasSubstr("key tokenizer.ggml.merges is no list of strings"));
  for (const float value : {HUGE_VALF, -HUGE_VALF, NAN}) {
    EXPECT_THAT(refusal([&](GgufBuilder& file) { file.F32("llama.rope.freq_base", value); }),
                HasSubstr("llama.rope.freq_base is"));
    EXPECT_THAT(refusal([&](GgufBuilder& file) { file.F32("llama.rope.scaling.factor", value); }),
                HasSubstr("expected a finite number"));
  }
}

TEST_F(GgufFamiliesTest, SettingsThatWouldBeLostAreRefused) {
  struct Case {
    const char* key;
    const char* expected;
    std::string architecture = "gemma3";
  };
  for (const Case& bad : {Case{"gemma3.final_logit_softcapping", "final_logit_softcapping is 2"},
                          Case{"llama.logit_scale", "llama.logit_scale is 2", "llama"},
                          Case{"llama.embedding_scale", "llama.embedding_scale is 2", "llama"},
                          Case{"qwen3.residual_scale", "qwen3.residual_scale is 2", "qwen3"},
                          Case{"llama.attention.scale", "llama.attention.scale is 2", "llama"},
                          Case{"qwen2.attn_logit_softcapping", "attn_logit_softcapping is 2", "qwen2"}}) {
    GgufBuilder file = Keys(bad.architecture);
    file.F32(bad.key, 2.0F);
    EXPECT_THAT(Refusal(Weights(SentencePiece(file), kPlain, false)), HasSubstr(bad.expected));
  }
  GgufBuilder window = Keys("llama"), layers = Keys("llama", 1000000000), scores = Keys("llama"),
              values = Keys("qwen3");
  window.U32("llama.attention.sliding_window", 4096);
  EXPECT_THAT(Refusal(Weights(SentencePiece(window), kPlain, false)), HasSubstr("sliding_window is 4096"));
  EXPECT_THAT(Refusal(Weights(SentencePiece(layers), kPlain, false)), HasSubstr("block_count is 1000000000"));
  scores.Text("tokenizer.ggml.model", "llama").Texts("tokenizer.ggml.tokens", kTokens);
  scores.I32s("tokenizer.ggml.token_type", std::vector<int32_t>(kTokens.size(), 1));
  scores.F32s("tokenizer.ggml.scores", std::vector<float>(kTokens.size(), NAN));
  EXPECT_THAT(Refusal(Weights(scores, kPlain, false)), HasSubstr("tokenizer.ggml.scores is missing or not 8 finite"));
  values.Text("tokenizer.ggml.model", "bert");
  EXPECT_THAT(Refusal(Weights(values, kWithHeadNorms, false)), HasSubstr("expected one of: gpt2, llama"));
}

TEST(GgufTokenizerTest, ByteLevelPreTokenizersAreThoseOfTheFamilies) {
  GgufTokenizerKind qwen, llama;
  qwen.pre = "qwen2";
  llama.pre = "llama-bpe";
  llama.ignore_merges = true;
  const nlohmann::ordered_json a = TokenizerStages(qwen), b = TokenizerStages(llama);
  EXPECT_EQ(a["normalizer"]["type"], "NFC");
  EXPECT_EQ(a["pre_tokenizer"]["pretokenizers"][1]["use_regex"], false);
  EXPECT_EQ(b["normalizer"], nullptr);
  EXPECT_EQ(b["model"]["ignore_merges"], true);
  EXPECT_THAT(b["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"], HasSubstr("\\p{N}{1,3}"));
}

// The expected order is what transformers 5.24 (generate_merges) makes of these tokens and scores.
TEST(GgufTokenizerTest, MergesAreRecoveredInTransformersOrder) {
  const std::vector<std::string> tokens = {"_",    "t",  "h",  "e",  "a",   "th",   "he", "the",
                                           "_the", "_t", "at", "_a", "hat", "that", "__", "ea"};
  std::vector<double> scores;
  for (size_t i = 0; i < tokens.size(); ++i) scores.push_back(-static_cast<double>(i));
  const auto text = [&tokens](std::span<const double> by) {
    std::string result;
    const auto merges = SentencePieceMerges(tokens, by, 1 << 20);
    EXPECT_TRUE(merges.ok()) << merges.status();
    if (!merges.ok()) return result;
    for (const SentencePieceMerge& merge : *merges) {
      result += std::string(merge.left) + "+" + std::string(merge.right) + " ";
    }
    return result;
  };
  EXPECT_EQ(text(scores), "t+h h+e th+e t+he _t+he _+the _+t a+t _+a h+at th+at t+hat _+_ e+a ");
  EXPECT_EQ(text(std::vector<double>(tokens.size(), 0.0)),
            "_t+he th+at th+e _+the t+hat t+he h+at t+h h+e _+t a+t _+a _+_ e+a ");
}

// n tokens a, aa, aaa, ... imply n^2 / 2 merges of n^3 / 6 bytes: the limit holds while they are found.
TEST(GgufTokenizerTest, MergesStopAtTheirLimit) {
  std::vector<std::string> tokens;
  for (size_t n = 1; n <= 2000; ++n) tokens.emplace_back(n, 'a');
  const std::vector<double> scores(tokens.size(), 0.0);
  const auto merges = SentencePieceMerges(tokens, scores, 1 << 20);
  EXPECT_EQ(merges.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(merges.status().message()), HasSubstr("more than 1048576 bytes"));
}

}  // namespace
}  // namespace iha::checkpoint
