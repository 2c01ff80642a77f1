// A good IHA checkpoint with one thing wrong: each is refused in one line that names the file, the thing, what was
// found and what was expected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>

#include "model/checkpoint/inspect.h"
#include "model/checkpoint/json_check.h"
#include "model/checkpoint/model_folder.h"
#include "tests/model/checkpoint/random_checkpoint.h"
#include "tests/support/temp_dir.h"

namespace iha::checkpoint {
namespace {

using ::testing::HasSubstr;
using testing::ReadText;
using testing::SafetensorsBytes;
using testing::WriteRandomCheckpoint;
using testing::WriteText;

constexpr const char* kConfig = R"({
  "model_type": "llama", "architectures": ["LlamaForCausalLM"], "torch_dtype": "float32",
  "vocab_size": 9, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2,
  "num_key_value_heads": 2, "head_dim": 4, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 1e4,
  "initializer_range": 0.02, "eos_token_id": 2,
  "iha_eval": {"version": 1, "mlp": "gated", "pattern": "per_layer", "attention": [
    {"kind": "iha", "pseudo_heads": 3, "alpha_layout": "source_target_pseudo", "collapse": "per_head",
     "mask": "flat_causal", "rope_positions": "virtual", "rope_pairing": "half", "qk_norm": "none",
     "window": {"unit": "token", "size": 5}},
    {"kind": "local", "window": 7, "rope_pairing": "half", "qk_norm": "none"}]}
})";

// What the text becomes: every `from` replaced, which must occur.
struct Edit {
  std::string from, to;
  std::vector<const char*> expected;
};

std::string Apply(std::string text, const Edit& edit) {
  size_t at = text.find(edit.from);
  EXPECT_NE(at, std::string::npos) << edit.from;
  for (; at != std::string::npos; at = text.find(edit.from, at + edit.to.size())) {
    text.replace(at, edit.from.size(), edit.to);
  }
  return text;
}

class BadCheckpoint : public ::testing::Test {
 protected:
  void SetUp() override { WriteRandomCheckpoint(dir_.path(), kConfig); }

  void ExpectRefused(const std::vector<const char*>& expected) {
    const auto checkpoint = Checkpoint::Open(dir_.path());
    ASSERT_FALSE(checkpoint.ok());
    const std::string message(checkpoint.status().message());
    EXPECT_TRUE(message.starts_with(dir_.path())) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_LT(message.size(), dir_.path().size() + 700) << message;
    for (const char* part : expected) EXPECT_THAT(message, HasSubstr(part));
  }

  iha::testing::TempDir dir_;
};

TEST_F(BadCheckpoint, TheBaseIsGood) {
  const auto checkpoint = Checkpoint::Open(dir_.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_TRUE(checkpoint->warnings().empty());
}

TEST_F(BadCheckpoint, ConfigValues) {
  const Edit edits[] = {
      {R"("vocab_size": 9)", R"("vocab_size": 0)", {"config.json: vocab_size is 0, expected a whole number from 1"}},
      {R"("hidden_size": 8)", R"("hidden_size": -8)", {"hidden_size is -8"}},
      {R"("hidden_size": 8)", R"("hidden_size": "8")", {"hidden_size is \"8\", expected a whole number"}},
      {R"("intermediate_size": 12)", R"("intermediate_size": 12.5)", {"intermediate_size is 12.5"}},
      {R"("num_hidden_layers": 2)", R"("num_hidden_layers": 1e300)", {"num_hidden_layers is 1e+300"}},
      {R"("num_attention_heads": 2)", R"("num_attention_heads": 3)", {"num_key_value_heads is 2", "heads 3"}},
      {R"("head_dim": 4)", R"("head_dim": 5)", {"head_dim is 5, expected an even number"}},
      {R"("head_dim": 4)", R"("head_dim": 18446744073709551616)", {"head_dim is 1.8446744073709552e+19"}},
      {R"("rms_norm_eps": 1e-5)", R"("rms_norm_eps": -1e-5)", {"rms_norm_eps is -1e-05, expected a number above 0"}},
      {R"("rope_theta": 1e4)", R"("rope_theta": 0)", {"rope_theta is 0"}},
      {R"(["LlamaForCausalLM"])", R"("LlamaForCausalLM")", {"architectures is \"LlamaForCausalLM\", expected a list"}},
      {R"("float32")", "32", {"torch_dtype is 32"}},
      {R"("eos_token_id": 2)", R"("eos_token_id": [2, -1])", {"eos_token_id is [2,-1], expected a token id"}},
      {R"("iha_eval": {)", R"("iha_eval": null, "was": {)", {"iha_eval is null, expected an object"}},
      {R"("version": 1)", R"("version": "1")", {"iha_eval.version is \"1\", expected 1"}},
      {R"("pseudo_heads": 3)", R"("pseudo_heads": 0)", {"iha_eval.attention[0].pseudo_heads is 0", "from 1"}},
      {R"("size": 5)", R"("size": 0)", {"iha_eval.attention[0].window.size is 0", "from 1"}},
      {R"("window": 7)", R"("window": 0)", {"iha_eval.attention[1].window is 0", "from 1"}},
      {R"("window": 7)", R"("window": 7.5)", {"iha_eval.attention[1].window is 7.5"}},
      {"source_target_pseudo", "target_source_pseudo", {"attention[0].alpha_layout is target_source_pseudo"}},
      {"\"per_layer\"", "\"layerwise\"", {"iha_eval.pattern is layerwise, expected per_layer or repeat"}},
      {R"("num_hidden_layers": 2)", R"("num_hidden_layers": 3)", {"attention has 2 layers", "num_hidden_layers 3"}},
  };
  for (const Edit& edit : edits) {
    SCOPED_TRACE(edit.to);
    WriteText(dir_.File("config.json"), Apply(kConfig, edit));
    ExpectRefused(edit.expected);
  }
}

TEST_F(BadCheckpoint, ConfigText) {
  const std::string config = kConfig;
  const std::string deep(100'000, '[');
  const std::pair<std::string, std::vector<const char*>> texts[] = {
      {"", {"config.json: no valid JSON at line 1, column 1: unexpected end of input"}},
      {config.substr(0, config.size() / 2), {"no valid JSON at line 6", "near iha_eval"}},
      {config + "x", {"no valid JSON at line 11, column 2", "expected end of input"}},
      {config + "{}", {"no valid JSON at line 11, column 2", "expected end of input"}},
      {config + std::string(1, '\0') + "{}", {"holds a zero byte at line 11, column 2"}},
      {"\xef\xbb\xbf" + config, {"byte order mark", "save it as UTF-8 without one"}},
      {"\xff\xfe{", {"no valid JSON at line 1, column 1"}},
      {"// made by hand\n" + config, {"no valid JSON at line 1, column 1: invalid literal"}},
      {deep, {"[0][0]", "nested more than 64 deep"}},
      {Apply(config, {"0.02", deep + std::string(deep.size(), ']'), {}}), {"initializer_range[0]", "more than 64"}},
      // Was printed, by recursion, in the message that hidden_size is no number.
      {Apply(config, {R"("hidden_size": 8)", R"("hidden_size": )" + deep + std::string(deep.size(), ']'), {}}),
       {"hidden_size[0]", "more than 64"}},
      {Apply(config, {R"("hidden_size": 8)", R"("hidden_size": 8, "hidden_size": 8)", {}}),
       {"hidden_size is there twice; keep one"}},
      {Apply(config, {R"("kind": "local")", R"("kind": "local", "kind": "local")", {}}),
       {"iha_eval.attention[1].kind is there twice"}},
      {Apply(config, {"0.02", "NaN", {}}), {"initializer_range is NaN (line 5, column 24)", "write a finite value"}},
      {Apply(config, {"0.02", "-Infinity", {}}), {"initializer_range is Infinity (line 5", "write a finite value"}},
      {Apply(config, {"0.02", "1e999", {}}), {"near initializer_range: number overflow parsing '1e999'"}},
      {Apply(config, {R"("pseudo_heads": 3)", R"("pseudo_heads": NaN)", {}}),
       {"iha_eval.attention[0].pseudo_heads is NaN"}},
      {"[1]", {"holds no JSON object"}},
  };
  for (const auto& [text, expected] : texts) {
    SCOPED_TRACE(text.substr(0, 60));
    WriteText(dir_.File("config.json"), text);
    ExpectRefused(expected);
  }
}

TEST_F(BadCheckpoint, TensorHeaders) {
  const std::string good = ReadText(dir_.File("model.safetensors"));
  uint64_t size = 0;
  std::memcpy(&size, good.data(), 8);
  const std::string header = good.substr(8, size), data = good.substr(8 + size);
  const std::string q = R"("model.layers.0.self_attn.q_proj.weight":{)";
  const size_t entry = header.find(q);
  ASSERT_NE(entry, std::string::npos);
  const std::string whole = header.substr(entry, header.find('}', entry) + 1 - entry);
  const auto in_q = [&](const std::string& from, const std::string& to) {
    Edit edit{whole, whole, {}};
    const size_t at = edit.to.find(from);
    EXPECT_NE(at, std::string::npos) << edit.to;
    edit.to.replace(at, from.size(), to);
    return Apply(header, edit);
  };
  const std::pair<std::string, std::vector<const char*>> headers[] = {
      {in_q("[8,8]", "[64]"), {"q_proj.weight has shape [64], expected [8, 8]"}},
      {in_q("[8,8]", "[0,8]"), {"q_proj.weight", "shape [0, 8] take 0"}},
      {in_q("[8,8]", "[-8,-8]"), {"q_proj.weight: shape [-8,-8]"}},
      {in_q("[8,8]", "[4611686018427387904,16]"), {"q_proj.weight: shape [4611686018427387904,16]"}},
      {in_q("[8,8]", "[8.0,8]"), {"q_proj.weight: shape [8.0,8]"}},
      {in_q("F32", "F8_E4M3"), {"q_proj.weight: dtype F8_E4M3 is unknown, expected F32"}},
      {in_q("F32", "f32"), {"dtype f32 is unknown"}},
      {in_q("\"F32\"", "null"), {"dtype is missing or no string"}},
      {in_q("\"dtype\":\"F32\"", "\"dtype\":\"F32\",\"dtype\":\"F32\""),
       {"header: model.layers.0.self_attn.q_proj.weight.dtype is there twice"}},
      {in_q(q, whole + "," + q), {"header: model.layers.0.self_attn.q_proj.weight is there twice"}},
      {Apply(header, {"0.self_attn.iha.alpha_k", "0.self_attn.iha.alpha_x", {}}), {"alpha_k is missing"}},
      {"\xef\xbb\xbf" + header, {"header: begins with a byte order mark"}},
      {header + "x", {"header: no valid JSON at line 1, column", "expected end of input"}},
      {header + std::string(1, '\0'), {"header: holds a zero byte at line 1, column"}},
  };
  for (const auto& [text, expected] : headers) {
    SCOPED_TRACE(text == header ? "unchanged" : text.substr(entry, 120));
    std::string bytes = SafetensorsBytes(text, 0) + data;
    WriteText(dir_.File("model.safetensors"), bytes);
    ExpectRefused(expected);
  }
}

TEST_F(BadCheckpoint, PipesAreNotWaitedFor) {
  for (const char* name : {"config.json", "generation_config.json", "model.safetensors"}) {
    SCOPED_TRACE(name);
    const std::string path = dir_.File(name), kept = dir_.File("kept");
    const bool there = std::filesystem::exists(path);
    if (there) std::filesystem::rename(path, kept);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    ExpectRefused({name, "is no regular file"});
    EXPECT_FALSE(IsFakeFolder(dir_.path()));
    std::filesystem::remove(path);
    if (there) std::filesystem::rename(kept, path);
  }
}

TEST_F(BadCheckpoint, AlphaOfTheOtherLayout) {
  WriteText(dir_.File("config.json"), Apply(kConfig, {"source_target_pseudo", "target_pseudo_source", {}}));
  ExpectRefused({"model.safetensors: tensor model.layers.0.self_attn.iha.alpha_q has shape [2, 2, 3]",
                 "expected [2, 3, 2] from config.json"});
  WriteText(dir_.File("config.json"), Apply(kConfig, {R"("collapse": "per_head")", R"("collapse": "global")", {}}));
  ExpectRefused({"iha.collapse has shape [2, 3], expected [2, 6]"});
}

TEST_F(BadCheckpoint, WhatIsOddButRunsIsAWarning) {
  std::string bytes = ReadText(dir_.File("model.safetensors"));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(bytes.data() + bytes.size() - 4, &nan, 4);
  std::filesystem::rename(dir_.File("model.safetensors"), dir_.File("a.safetensors"));
  WriteText(dir_.File("a.safetensors"), bytes);
  WriteText(dir_.File("model.safetensors.index.json"), R"({"weight_map": {"model.norm.weight": "a.safetensors"}})");
  WriteText(dir_.File("generation_config.json"), R"({"eos_token_id": [2, 9], "temperature": 0.2, "top_p": 0.9})");
  const auto checkpoint = Checkpoint::Open(dir_.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const Inspection inspection = Inspect(*checkpoint, std::vector<int64_t>{16});
  using ::testing::Contains;
  EXPECT_THAT(checkpoint->generation().eos_token_ids, ::testing::ElementsAre(2));  // 9 would end every request
  EXPECT_THAT(inspection.warnings, Contains(HasSubstr("eos_token_id 9 is not below vocab_size 9")));
  EXPECT_THAT(inspection.warnings, Contains(HasSubstr("lm_head.weight lies in")));
  EXPECT_THAT(inspection.warnings, Contains(HasSubstr("holds 1 values that are NaN or infinite")));
  EXPECT_THAT(InspectionText(inspection),
              HasSubstr("generation_config.json says, and a sweep decides itself: temperature=0.2, top_p=0.9\n"));
}

TEST(CheckJsonTest, TakesWhatIsOneValue) {
  const std::string nested = std::string(kMaxCheckedDepth, '[') + std::string(kMaxCheckedDepth, ']');
  for (const std::string text :
       {" {} \n", "[1, 2.5e-3, \"NaN\"]", "{\"a\": {\"b\": 1}, \"c\": {\"b\": \"Infinity\"}}", nested.c_str()}) {
    EXPECT_TRUE(CheckJson(text, "file").ok()) << CheckJson(text, "file");
  }
}

}  // namespace
}  // namespace iha::checkpoint
