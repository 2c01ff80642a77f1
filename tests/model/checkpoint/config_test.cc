#include "model/checkpoint/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace iha::checkpoint {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

json Llama() {
  return {{"model_type", "llama"},  {"hidden_size", 64}, {"num_attention_heads", 4},
          {"num_hidden_layers", 2}, {"vocab_size", 100}, {"intermediate_size", 128}};
}

json With(json base, const json& changes) {
  base.update(changes);
  return base;
}

ModelConfig Parse(const json& value) {
  absl::StatusOr<ModelConfig> config = ParseModelConfig(value.dump());
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *std::move(config) : ModelConfig{};
}

TEST(ConfigTest, AbsentFieldsTakeTheDefaultsOfTheTransformersClass) {
  const ModelConfig llama = Parse({{"model_type", "llama"}});
  EXPECT_EQ(llama.vocab_size, 32000);
  EXPECT_EQ(llama.num_kv_heads, 32);
  EXPECT_EQ(llama.head_dim, 128);
  EXPECT_EQ(llama.rms_norm_eps, 1e-6);
  EXPECT_EQ(llama.context_tokens, 2048);
  EXPECT_EQ(llama.eos_token_ids, std::vector<int32_t>{2});
  EXPECT_FALSE(llama.tied_embeddings || llama.qkv_bias || llama.mlp_bias);

  const ModelConfig mistral = Parse({{"model_type", "mistral"}});
  EXPECT_EQ(mistral.num_kv_heads, 8);
  EXPECT_EQ(mistral.intermediate_size, 14336);
  EXPECT_EQ(mistral.layers[31].window, (Window{WindowUnit::kToken, 4096}));

  const ModelConfig qwen2 = Parse({{"model_type", "qwen2"}});
  EXPECT_TRUE(qwen2.qkv_bias);
  EXPECT_FALSE(qwen2.o_bias);
  EXPECT_EQ(qwen2.layers[31].kind, AttentionKind::kGlobal);
  EXPECT_THAT(qwen2.eos_token_ids, IsEmpty());

  const ModelConfig qwen3 = Parse({{"model_type", "qwen3"}});
  EXPECT_EQ(qwen3.head_dim, 128);
  EXPECT_EQ(qwen3.layers[0].qk_norm, QkNorm::kPreRope);
  EXPECT_FALSE(qwen3.qkv_bias);

  const ModelConfig gemma = Parse({{"model_type", "gemma3_text"}});
  EXPECT_EQ(gemma.head_dim, 256);
  EXPECT_TRUE(gemma.tied_embeddings && gemma.norm_plus_one && gemma.sandwich_norms);
  EXPECT_EQ(gemma.activation, Activation::kGeluTanh);
  EXPECT_EQ(gemma.embedding_scale, std::sqrt(2304.0));
  EXPECT_EQ(gemma.attention_scale, 1.0 / 16);
  EXPECT_EQ(gemma.layers[4].kind, AttentionKind::kLocal);
  EXPECT_EQ(gemma.layers[5].kind, AttentionKind::kGlobal);
  EXPECT_EQ(gemma.ropes[static_cast<size_t>(gemma.layers[0].rope)].theta, 1e4);
  EXPECT_EQ(gemma.ropes[static_cast<size_t>(gemma.layers[5].rope)].theta, 1e6);
}

TEST(ConfigTest, NullIsNotAbsent) {
  EXPECT_EQ(Parse({{"model_type", "mistral"}, {"num_key_value_heads", nullptr}}).num_kv_heads, 32);
  EXPECT_EQ(Parse({{"model_type", "mistral"}, {"sliding_window", nullptr}}).layers[0].kind, AttentionKind::kGlobal);
  EXPECT_EQ(Parse(With(Llama(), {{"head_dim", nullptr}})).head_dim, 16);
}

TEST(ConfigTest, UnknownFieldsGiveOneWarningEachAndHarmlessOnesNone) {
  const ModelConfig config =
      Parse(With(Llama(), {{"use_cache", true}, {"attention_dropout", 0.1}, {"zeta", 1}, {"alpha\n", {1, 2}}}));
  EXPECT_THAT(config.warnings, ::testing::ElementsAre(HasSubstr("config.json: alpha\\n is not known"),
                                                      HasSubstr("config.json: zeta is not known")));
  EXPECT_THAT(config.unknown_fields, ::testing::SizeIs(2));
}

TEST(ConfigTest, BothRopeFormsAreOneFunction) {
  const json scaling = {{"type", "linear"}, {"factor", 4}};
  const ModelConfig old_form = Parse(With(Llama(), {{"rope_theta", 5e5}, {"rope_scaling", scaling}}));
  const ModelConfig new_form =
      Parse(With(Llama(), {{"rope_parameters", {{"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 500000}}}}));
  const ModelConfig by_type = Parse(
      With(Llama(),
           {{"rope_parameters", {{"full_attention", {{"rope_type", "linear"}, {"factor", 4}, {"rope_theta", 5e5}}}}}}));
  EXPECT_EQ(old_form.FunctionBytes(), new_form.FunctionBytes());
  EXPECT_EQ(old_form.FunctionBytes(), by_type.FunctionBytes());
  EXPECT_NE(old_form.FunctionBytes(), Parse(With(Llama(), {{"rope_theta", 5e5}})).FunctionBytes());
}

void ExpectRefused(const json& value, const std::vector<std::string>& expected) {
  const auto config = ParseModelConfig(value.dump());
  ASSERT_FALSE(config.ok()) << value.dump();
  const std::string message = Message(config.status());
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_TRUE(message.starts_with("config.json: ")) << message;
  for (const std::string& part : expected) EXPECT_THAT(message, HasSubstr(part)) << value.dump();
}

// transformers 5 reads it outside too; values that contradict each other are refused.
TEST(ConfigTest, OriginalPositionsMayStandOutside) {
  const json yarn = {{"rope_type", "yarn"}, {"factor", 4}, {"rope_theta", 1e4}};
  const json llama3 = {{"rope_type", "llama3"}, {"factor", 8}, {"low_freq_factor", 1}, {"high_freq_factor", 4}};
  for (const json& inner : {yarn, llama3}) {
    const json whole = With(inner, {{"original_max_position_embeddings", 32}});
    const json outside = {{"original_max_position_embeddings", 32}};
    for (const char* field : {"rope_parameters", "rope_scaling"}) {
      const std::string expected = Parse(With(Llama(), {{field, whole}})).FunctionBytes();
      const ModelConfig moved = Parse(With(With(Llama(), outside), {{field, inner}}));
      EXPECT_EQ(moved.FunctionBytes(), expected) << inner.dump();
      EXPECT_THAT(moved.warnings, ::testing::IsEmpty());
      EXPECT_EQ(Parse(With(With(Llama(), outside), {{field, whole}})).FunctionBytes(), expected);
      ExpectRefused(With(With(Llama(), {{"original_max_position_embeddings", 16}}), {{field, whole}}),
                    {field, "original_max_position_embeddings is 32", "outside says 16", "remove one"});
    }
  }
  // By layer type transformers 5 does not see it.
  ExpectRefused(
      With(Llama(), {{"original_max_position_embeddings", 32}, {"rope_parameters", {{"full_attention", yarn}}}}),
      {"rope_parameters.full_attention.original_max_position_embeddings is 2048", "outside says 32"});
  ExpectRefused(With(Llama(), {{"original_max_position_embeddings", "long"}}),
                {"original_max_position_embeddings is \"long\""});
}

// transformers takes such a Mistral for a Ministral.
TEST(ConfigTest, LayerTypesOfAMistral) {
  const json mistral = {{"model_type", "mistral"}, {"num_hidden_layers", 2}, {"sliding_window", 9}};
  const json mixed = {"full_attention", "sliding_attention"};
  const ModelConfig config = Parse(With(mistral, {{"layer_types", mixed}}));
  EXPECT_EQ(config.layers[0].kind, AttentionKind::kGlobal);
  EXPECT_EQ(config.layers[1].kind, AttentionKind::kLocal);
  EXPECT_EQ(config.layers[1].window->size, 9);
  EXPECT_THAT(config.warnings, ::testing::IsEmpty());
  EXPECT_EQ(Parse(With(mistral, {{"layer_types", nullptr}})).layers[0].kind, AttentionKind::kLocal);
  ExpectRefused(With(mistral, {{"layer_types", mixed}, {"sliding_window", nullptr}}),
                {"sliding_window is absent, null or off", "layer_types[1]"});
  ExpectRefused(With(mistral, {{"layer_types", {"full_attention"}}}), {"layer_types has 1 entries"});
}

TEST(ConfigTest, EachFieldOfTheFunctionEntersItsBytes) {
  const std::string base = Parse(Llama()).FunctionBytes();
  const json kChanges[] = {
      {{"vocab_size", 101}},
      {{"num_key_value_heads", 2}},
      {{"head_dim", 8}},
      {{"hidden_act", "gelu"}},
      {{"rms_norm_eps", 1e-5}},
      {{"attention_bias", true}},
      {{"mlp_bias", true}},
      {{"rope_theta", 9e3}},
      {{"intermediate_size", 64}},
      {{"num_hidden_layers", 3}},
      {{"max_position_embeddings", 99}},
      {{"tie_word_embeddings", true}},
  };
  for (const json& change : kChanges) {
    EXPECT_NE(Parse(With(Llama(), change)).FunctionBytes(), base) << change.dump();
  }
  EXPECT_EQ(Parse(With(Llama(), {{"torch_dtype", "bfloat16"}, {"eos_token_id", {7, 8}}})).FunctionBytes(), base);
}

TEST(ConfigTest, GenerationConfigRecordsWhatItDoesNotApply) {
  const auto config = ParseGenerationConfig(
      R"({"bos_token_id": 1, "eos_token_id": [2, 5], "temperature": 0.6, "do_sample": true, "pad_token_id": 0})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->eos_token_ids, (std::vector<int32_t>{2, 5}));
  EXPECT_EQ(config->bos_token_id, 1);
  EXPECT_THAT(config->ignored, ::testing::ElementsAre("do_sample=true", "temperature=0.6"));
  EXPECT_THAT(Message(ParseGenerationConfig(R"({"eos_token_id": -1})").status()),
              HasSubstr("generation_config.json: eos_token_id is -1"));
}

struct BadCase {
  json change;
  std::vector<std::string> expected;
};

TEST(ConfigTest, EachBadFieldIsNamed) {
  const BadCase kCases[] = {
      {{{"model_type", "mamba"}}, {"model_type is mamba", "llama, mistral, qwen2, qwen3, gemma3_text"}},
      {{{"model_type", 3}}, {"model_type is 3", "expected a string"}},
      {{{"architectures", {"LlamaForSequenceClassification"}}}, {"architectures[0]", "expected LlamaForCausalLM"}},
      {{{"hidden_size", 0}}, {"hidden_size is 0"}},
      {{{"hidden_size", 64.5}}, {"hidden_size is 64.5"}},
      {{{"vocab_size", 18446744073709551615U}}, {"vocab_size is 18446744073709551615"}},
      {{{"vocab_size", int64_t{1} << 60}}, {"vocab_size is 1152921504606846976, expected a whole number from 1 to"}},
      {{{"intermediate_size", int64_t{1} << 60}}, {"intermediate_size is 1152921504606846976"}},
      {{{"num_attention_heads", int64_t{1} << 40}}, {"num_attention_heads is 1099511627776"}},
      {{{"num_hidden_layers", 100000}}, {"num_hidden_layers is 100000"}},
      {{{"num_hidden_layers", 1'000'000'000}}, {"num_hidden_layers is 1000000000, expected a whole number from 1 to"}},
      {{{"max_position_embeddings", int64_t{1} << 62}}, {"max_position_embeddings is 4611686018427387904"}},
      {{{"head_dim", 0}}, {"head_dim is 0, expected a whole number from 2 to 512"}},
      {{{"num_attention_heads", 3}}, {"head_dim is missing", "hidden_size 64", "num_attention_heads 3"}},
      {{{"num_key_value_heads", 3}}, {"num_key_value_heads is 3", "divisor of num_attention_heads 4"}},
      {{{"head_dim", 15}}, {"head_dim is 15", "even"}},
      {{{"head_dim", 514}}, {"head_dim is 514", "512"}},
      {{{"hidden_size", 4096}}, {"head_dim is 1024", "hidden_size 4096 / num_attention_heads 4", "at most 512"}},
      {{{"rms_norm_eps", 0}}, {"rms_norm_eps is 0"}},
      {{{"rms_norm_eps", "tiny"}}, {"rms_norm_eps is \"tiny\"", "expected a number"}},
      {{{"hidden_act", "quick_gelu"}}, {"hidden_act is quick_gelu", "expected silu"}},
      {{{"attention_bias", 1}}, {"attention_bias is 1", "true or false"}},
      {{{"torch_dtype", "float16"}, {"dtype", "bfloat16"}}, {"torch_dtype is float16", "dtype is bfloat16"}},
      {{{"quantization_config", {{"bits", 4}}}}, {"quantization_config is set"}},
      {{{"partial_rotary_factor", 0.5}}, {"partial_rotary_factor is not 1"}},
      {{{"eos_token_id", "</s>"}}, {"eos_token_id is \"</s>\""}},
      {{{"rope_scaling", {{"type", "longrope"}, {"factor", 2}}}}, {"rope_scaling.rope_type is longrope"}},
      {{{"rope_scaling", {{"type", "linear"}}}}, {"rope_scaling.factor is missing"}},
      {{{"rope_scaling", {{"type", "linear"}, {"rope_type", "yarn"}, {"factor", 2}}}}, {"rope_type is yarn"}},
      {{{"rope_scaling",
         {{"rope_type", "llama3"},
          {"factor", 8},
          {"low_freq_factor", 4},
          {"high_freq_factor", 4},
          {"original_max_position_embeddings", 64}}}},
       {"high_freq_factor is 4", "more than low_freq_factor"}},
      {{{"rope_theta", 1e4}, {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 2e4}}}},
       {"rope_theta is 10000", "rope_parameters says 20000"}},
      {{{"rope_scaling", {{"type", "linear"}, {"factor", 2}}}, {"rope_parameters", {{"rope_type", "default"}}}},
       {"both present and differ"}},
      {{{"rope_parameters", {{"sliding_attention", {{"rope_type", "default"}}}}}}, {"no full_attention"}},
      {{{"iha_eval", 5}}, {"iha_eval is 5"}},
  };
  for (const BadCase& bad : kCases) ExpectRefused(With(Llama(), bad.change), bad.expected);
  EXPECT_THAT(Message(ParseModelConfig("{\"model_type\": \"llama\"").status()), HasSubstr("no valid JSON"));
  EXPECT_THAT(Message(ParseModelConfig("{\"rms_norm_eps\": Infinity}").status()), HasSubstr("Infinity"));
  EXPECT_THAT(Message(ParseModelConfig("[]").status()), HasSubstr("no JSON object"));
  EXPECT_THAT(Message(ParseModelConfig("{}").status()), HasSubstr("model_type is missing"));
  ExpectRefused({{"model_type", "gemma3_text"}, {"final_logit_softcapping", 30.0}}, {"final_logit_softcapping"});
  ExpectRefused({{"model_type", "gemma3_text"}, {"sliding_window", nullptr}}, {"sliding_window"});
  ExpectRefused({{"model_type", "qwen2"}, {"layer_types", {"full_attention"}}}, {"layer_types has 1 entries"});
  ExpectRefused({{"model_type", "qwen2"}, {"iha_eval", json::object()}}, {"iha_eval needs model_type llama"});
}

// ---- iha_eval -------------------------------------------------------------------------------------------------

json IhaLayer() {
  return {{"kind", "iha"},          {"pseudo_heads", 2},
          {"mask", "flat_causal"},  {"alpha_layout", "source_target_pseudo"},
          {"collapse", "per_head"}, {"rope_positions", "virtual"},
          {"window", nullptr},      {"rope_pairing", "half"},
          {"qk_norm", "none"}};
}
json Block(const std::vector<json>& layers, const char* pattern = "repeat") {
  return With(Llama(), {{"iha_eval", {{"version", 1}, {"mlp", "gated"}, {"attention", layers}, {"pattern", pattern}}}});
}
json Diff(json lambda) {
  return {{"kind", "diff"}, {"rope_pairing", "half"}, {"window", nullptr}, {"lambda_init", lambda}, {"norm_eps", 1e-5}};
}

TEST(IhaEvalTest, RepeatsAndResolvesPerLayer) {
  json value = Block({IhaLayer(), Diff("depth")});
  value["num_hidden_layers"] = 4;
  const ModelConfig config = Parse(value);
  EXPECT_EQ(config.layers[2].kind, AttentionKind::kIha);
  EXPECT_EQ(config.layers[2].pseudo_heads, 2);
  EXPECT_DOUBLE_EQ(config.layers[1].lambda_init, 0.8 - 0.6 * std::exp(-0.3));
  EXPECT_DOUBLE_EQ(config.layers[3].lambda_init, 0.8 - 0.6 * std::exp(-0.9));
}

TEST(IhaEvalTest, EveryRequiredFieldIsMissed) {
  const json global = {{"kind", "global"}, {"rope_pairing", "half"}, {"qk_norm", "none"}};
  const json kLayers[] = {IhaLayer(),
                          Diff(0.5),
                          global,
                          With(global, {{"kind", "local"}, {"window", 4}}),
                          With(global, {{"kind", "talking_heads"}, {"window", nullptr}}),
                          With(global, {{"kind", "diff_v2"}, {"window", 7}})};
  for (const json& layer : kLayers) {
    json value = Block({global, layer}, "per_layer");
    if (layer["kind"] == "diff_v2") value["num_key_value_heads"] = 2;
    ASSERT_TRUE(ParseModelConfig(value.dump()).ok()) << Message(ParseModelConfig(value.dump()).status());
    for (const auto& [field, unused] : layer.items()) {
      json without = value;
      without["iha_eval"]["attention"][1].erase(field);
      const std::string expected = "iha_eval.attention[1]." + field + " is missing (expected ";
      ExpectRefused(without, {expected.c_str()});
    }
    json extra = value;
    extra["iha_eval"]["attention"][1]["windw"] = 1;
    ExpectRefused(extra, {"iha_eval.attention[1].windw is unknown"});
  }
  for (const char* field : {"version", "mlp", "attention", "pattern"}) {
    json without = Block({IhaLayer()});
    without["iha_eval"].erase(field);
    const std::string expected = std::string("iha_eval.") + field + " is missing (expected ";
    ExpectRefused(without, {expected.c_str()});
  }
}

TEST(IhaEvalTest, BadCombinationsAreNamed) {
  const auto iha = [](const json& change) { return Block({With(IhaLayer(), change)}); };
  ExpectRefused(iha({{"mask", "causal"}}), {"attention[0].mask is causal", "flat_causal or token_causal"});
  ExpectRefused(iha({{"window", 5}}), {"attention[0].window is 5", "unit"});
  ExpectRefused(iha({{"window", {{"unit", "token"}}}}), {"window.size is missing"});
  ExpectRefused(iha({{"window", {{"unit", "token"}, {"size", 4}, {"x", 1}}}}), {"window.x is unknown"});
  ExpectRefused(iha({{"qk_norm", "pre_rope"}}), {"qk_norm is pre_rope", "none or pre_mix or post_mix"});
  ExpectRefused(iha({{"pseudo_heads", 0}}), {"pseudo_heads is 0"});
  ExpectRefused(iha({{"xsa", "both"}}), {"xsa is both", "pseudo or output"});
  ExpectRefused(Block({Diff("deep")}), {"lambda_init is deep", "depth or a number"});
  ExpectRefused(Block({Diff(1e308)}), {"lambda_init is 1e+308", "from -1000 to 1000"});
  ExpectRefused(Block({With(Diff(0.5), {{"gate", "headwise"}})}), {"gate is not allowed with kind diff"});
  ExpectRefused(With(Block({Diff(0.5)}), {{"num_key_value_heads", 2}}), {"diff", "num_key_value_heads"});
  ExpectRefused(With(Block({Diff(0.5)}), {{"head_dim", 258}}), {"attention[0].kind is diff", "at most 256, found 258"});
  ExpectRefused(Block(std::vector<json>()), {"attention is []"});
  ExpectRefused(Block({IhaLayer()}, "per_layer"), {"attention has 1 layers", "num_hidden_layers 2"});
  const json v2 = {{"kind", "diff_v2"}, {"rope_pairing", "half"}, {"window", nullptr}, {"qk_norm", "none"}};
  ExpectRefused(Block({v2}), {"diff_v2", "even number of query heads"});
  const json pseudo = {{"kind", "global"}, {"rope_pairing", "half"}, {"qk_norm", "none"}, {"xsa", "pseudo"}};
  ExpectRefused(Block({pseudo}), {"xsa is pseudo", "only kind iha"});
}

// RoPE's tables are exact below 2^21 radians, whatever the kind: positions times the fastest frequency, which only a
// scaling factor below 1 takes above 1. iha's virtual tokens count, and their indices have 32 bits.
TEST(IhaEvalTest, PositionsBeyondTheTablesAreRefused) {
  constexpr int64_t kMost = int64_t{1} << 21;
  const auto positions = [](const json& config, int64_t count) {
    return With(config, {{"max_position_embeddings", count}});
  };
  const json global = {{"kind", "global"}, {"rope_pairing", "half"}, {"qk_norm", "none"}};
  const json faster = With(Llama(), {{"rope_scaling", {{"type", "linear"}, {"factor", 0.5}}}});
  const json token = With(IhaLayer(), {{"rope_positions", "token"}});
  const struct {
    json config;
    int64_t most;
  } cases[] = {{Llama(), kMost},
               {Block({global}), kMost},
               {Block({Diff(0.5)}), kMost},
               {faster, kMost / 2},
               {Block({IhaLayer()}), kMost / 2},
               {Block({token}), kMost},
               {Block({With(token, {{"pseudo_heads", 4096}})}), kMost / 2},
               {Block({global, With(IhaLayer(), {{"pseudo_heads", 3}})}), kMost / 3}};
  for (const auto& c : cases) {
    EXPECT_EQ(Parse(positions(c.config, c.most)).context_tokens, c.most);
    ExpectRefused(positions(c.config, c.most + 1),
                  {fmt::format("max_position_embeddings is {}", c.most + 1), fmt::format("at most {} (layer", c.most)});
  }
}

// ---- rope -----------------------------------------------------------------------------------------------------

TEST(RopeTest, FrequenciesOfTheScalings) {
  RopeSpec spec{.theta = 10000};
  const std::vector<double> plain = InverseFrequencies(spec, 8);
  EXPECT_EQ(plain[0], 1.0);
  EXPECT_NEAR(plain[1], 0.1, 1e-16);
  EXPECT_NEAR(plain[3], 0.001, 1e-18);
  spec.scaling = RopeScaling::kDynamic;
  EXPECT_EQ(InverseFrequencies(spec, 8), plain);
  spec.scaling = RopeScaling::kLinear;
  spec.factor = 4;
  EXPECT_EQ(InverseFrequencies(spec, 8)[1], plain[1] / 4);
}

TEST(RopeTest, Llama3KeepsShortWavesDividesLongOnesAndBlendsBetween) {
  // Wavelengths 2 pi * 10^i for d = 8, theta 10^4: 6.3, 63, 628, 6283. Bounds: 64 / 4 = 16 and 64 / 0.5 = 128.
  const RopeSpec spec{.theta = 10000,
                      .scaling = RopeScaling::kLlama3,
                      .factor = 8,
                      .low_freq_factor = 0.5,
                      .high_freq_factor = 4,
                      .original_max_positions = 64};
  const std::vector<double> plain = InverseFrequencies({.theta = 10000}, 8), scaled = InverseFrequencies(spec, 8);
  EXPECT_EQ(scaled[0], plain[0]);
  const double smooth = (64 / (2 * M_PI * 10) - 0.5) / 3.5;
  EXPECT_NEAR(scaled[1], (1 - smooth) * plain[1] / 8 + smooth * plain[1], 1e-15);  // a few roundings of 0.1
  EXPECT_EQ(scaled[2], plain[2] / 8);
  EXPECT_EQ(scaled[3], plain[3] / 8);
}

TEST(RopeTest, YarnRampRunsBetweenItsCorrectionDimensions) {
  const RopeSpec spec{.theta = 10000,
                      .scaling = RopeScaling::kYarn,
                      .factor = 4,
                      .original_max_positions = 1024,
                      .beta_fast = 32,
                      .beta_slow = 1};
  // 32 ln(1024 / (beta 2 pi)) / (2 ln 10^4): 2.83 -> 2 and 8.85 -> 9 (d = 32, 16 pairs).
  const std::vector<double> plain = InverseFrequencies({.theta = 10000}, 32), scaled = InverseFrequencies(spec, 32);
  for (size_t i = 0; i < 16; ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - 2) / 7, 0.0, 1.0);
    EXPECT_NEAR(scaled[i], plain[i] * (ramp / 4 + (1 - ramp)), 4e-16 * plain[i]) << i;  // two roundings
  }
  RopeSpec smooth = spec;
  smooth.truncate = false;
  EXPECT_NE(InverseFrequencies(smooth, 32)[5], scaled[5]);
}

TEST(RopeTest, YarnAttentionFactor) {
  EXPECT_DOUBLE_EQ(YarnAttentionFactor(4, 0, 0), 0.1 * std::log(4.0) + 1);
  EXPECT_EQ(YarnAttentionFactor(1, 0, 0), 1.0);
  EXPECT_DOUBLE_EQ(YarnAttentionFactor(40, 1, 0.5), (0.1 * std::log(40.0) + 1) / (0.05 * std::log(40.0) + 1));
  const json given = {{"rope_type", "yarn"}, {"factor", 4}, {"attention_factor", 1.5}};
  EXPECT_EQ(Parse(With(Llama(), {{"rope_scaling", given}})).ropes[0].attention_factor, 1.5);
  EXPECT_EQ(Parse(With(Llama(), {{"rope_scaling", given}})).ropes[0].original_max_positions, 2048);
}

}  // namespace
}  // namespace iha::checkpoint
