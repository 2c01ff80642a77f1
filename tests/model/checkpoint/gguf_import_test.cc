#include "model/checkpoint/gguf/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/gguf/gguf_file.h"
#include "tests/model/checkpoint/gguf_builder.h"
#include "tests/model/checkpoint/tensor_values.h"
#include "tests/model/checkpoint/test_files.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"

namespace iha::checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::GgufBuilder;
using ::testing::HasSubstr;
using testing::ReadText;
using testing::Values;
using testing::WriteText;

constexpr uint64_t kHidden = 32, kInner = 64, kVocab = 6;  // 2 heads of 16, 1 key head

std::string Message(const absl::Status& status) { return std::string(status.message()); }

// Value r * 1000 + c at (r, c): a row or column out of place shows.
std::vector<float> Coordinates(uint64_t rows, uint64_t columns) {
  std::vector<float> values(rows * columns);
  for (uint64_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i / columns * 1000 + i % columns);
  }
  return values;
}

GgufBuilder Keys(std::string_view architecture = "llama", std::string_view pre = "smollm") {
  GgufBuilder file;
  file.Text("general.architecture", architecture).U32("llama.block_count", 1).U32("llama.context_length", 64);
  file.U32("llama.embedding_length", kHidden).U32("llama.feed_forward_length", kInner);
  file.U32("llama.attention.head_count", 2).U32("llama.attention.head_count_kv", 1);
  file.F32("llama.attention.layer_norm_rms_epsilon", 9.999999747378752e-06F).F32("llama.rope.freq_base", 100000.0F);
  file.Text("tokenizer.ggml.model", "gpt2").Text("tokenizer.ggml.pre", pre);
  file.Texts("tokenizer.ggml.tokens", {"<|end|>", "a", "b", "ab", "\xc4\xa0", "<user>"});
  file.I32s("tokenizer.ggml.token_type", {3, 1, 1, 1, 1, 4}).Texts("tokenizer.ggml.merges", {"a b"});
  file.U32("tokenizer.ggml.bos_token_id", 0).U32("tokenizer.ggml.eos_token_id", 0);
  file.Text("tokenizer.chat_template", "{{ messages }}\n\"quoted\"");
  return file;
}

GgufBuilder& Weights(GgufBuilder& file, std::string_view without = "") {
  const auto add = [&](const char* name, uint64_t rows, uint64_t columns) {
    if (name != without) file.FloatTensor(name, {rows, columns}, Coordinates(rows, columns));
  };
  const std::vector<float> ones(kHidden, 1.0F);
  add("token_embd.weight", kVocab, kHidden);
  file.FloatTensor("output_norm.weight", {kHidden}, ones).FloatTensor("blk.0.attn_norm.weight", {kHidden}, ones);
  file.FloatTensor("blk.0.ffn_norm.weight", {kHidden}, ones);
  add("blk.0.attn_q.weight", kHidden, kHidden);
  add("blk.0.attn_k.weight", kHidden / 2, kHidden);
  add("blk.0.attn_v.weight", kHidden / 2, kHidden);
  add("blk.0.attn_output.weight", kHidden, kHidden);
  add("blk.0.ffn_gate.weight", kInner, kHidden);
  add("blk.0.ffn_up.weight", kInner, kHidden);
  add("blk.0.ffn_down.weight", kHidden, kInner);
  return file;
}

class GgufImportTest : public ::testing::Test {
 protected:
  absl::StatusOr<GgufImport> Import(const std::string& bytes, DType dtype = DType::kF32) {
    WriteText(dir_.File("model.gguf"), bytes);
    return ImportGguf(dir_.File("model.gguf"), dir_.File("out"), dtype);
  }
  iha::testing::TempDir dir_;
};

TEST_F(GgufImportTest, WritesACheckpointWithRowsOfQAndKInOrder) {
  GgufBuilder file = Keys();
  const auto result = Import(Weights(file).Build());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->tensors, 11);
  const auto checkpoint = Checkpoint::Open(dir_.File("out"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_TRUE(checkpoint->warnings().empty());
  EXPECT_TRUE(checkpoint->config().tied_embeddings);
  // llama.cpp's converter stores head row a * half + i at 2 i + a.
  const std::vector<float> q = Values(*checkpoint, "model.layers.0.self_attn.q_proj.weight");
  const std::vector<float> k = Values(*checkpoint, "model.layers.0.self_attn.k_proj.weight");
  for (uint64_t row = 0; row < kHidden; ++row) {
    const uint64_t head = row / 16, a = row % 16 / 8, i = row % 8, stored = head * 16 + 2 * i + a;
    EXPECT_EQ(q[row * kHidden + 3], static_cast<float>(stored * 1000 + 3)) << row;
    if (row < 16) {
      EXPECT_EQ(k[row * kHidden + 3], static_cast<float>(stored * 1000 + 3)) << row;
    }
  }
  EXPECT_EQ(Values(*checkpoint, "model.layers.0.self_attn.v_proj.weight"), Coordinates(16, kHidden));
  EXPECT_EQ(Values(*checkpoint, "model.layers.0.mlp.down_proj.weight"), Coordinates(kHidden, kInner));
}

TEST_F(GgufImportTest, ConfigAndTokenizerSayWhatTheMetadataSays) {
  GgufBuilder file = Keys();
  ASSERT_TRUE(Import(Weights(file).Build()).ok());
  const json config = json::parse(ReadText(dir_.File("out/config.json")));
  EXPECT_THAT(ReadText(dir_.File("out/config.json")), HasSubstr("\"rms_norm_eps\": 1e-05"));
  EXPECT_EQ(config["rope_theta"], 100000.0);
  EXPECT_EQ(config["torch_dtype"], "float32");
  const json tokenizer = json::parse(ReadText(dir_.File("out/tokenizer.json")));
  EXPECT_EQ(tokenizer["model"]["vocab"]["ab"], 3);
  EXPECT_EQ(tokenizer["model"]["merges"], json::array({"a b"}));
  EXPECT_EQ(tokenizer["pre_tokenizer"]["pretokenizers"][0]["type"], "Digits");
  EXPECT_EQ(tokenizer["normalizer"], nullptr);
  EXPECT_EQ(tokenizer["post_processor"], nullptr);
  ASSERT_EQ(tokenizer["added_tokens"].size(), 2U);
  EXPECT_EQ(tokenizer["added_tokens"][0]["content"], "<|end|>");
  EXPECT_EQ(tokenizer["added_tokens"][0]["special"], true);
  EXPECT_EQ(tokenizer["added_tokens"][1]["id"], 5);
  EXPECT_EQ(tokenizer["added_tokens"][1]["special"], false);
  const json settings = json::parse(ReadText(dir_.File("out/tokenizer_config.json")));
  EXPECT_EQ(settings["chat_template"], "{{ messages }}\n\"quoted\"");
  EXPECT_EQ(settings["eos_token"], "<|end|>");
}

TEST_F(GgufImportTest, BosIsPrependedWhereTheModelWantsIt) {
  GgufBuilder file = Keys();
  file.Bool("tokenizer.ggml.add_bos_token", true);
  ASSERT_TRUE(Import(Weights(file).Build()).ok());
  const json post = json::parse(ReadText(dir_.File("out/tokenizer.json")))["post_processor"];
  EXPECT_EQ(post["type"], "TemplateProcessing");
  EXPECT_EQ(post["single"][0]["SpecialToken"]["id"], "<|end|>");
  EXPECT_EQ(post["special_tokens"]["<|end|>"]["ids"], json::array({0}));
}

TEST_F(GgufImportTest, Bf16RoundsToNearestEven) {
  GgufBuilder file = Keys();
  const auto result = Import(Weights(file).Build(), DType::kBF16);
  ASSERT_TRUE(result.ok()) << result.status();
  const auto checkpoint = Checkpoint::Open(dir_.File("out"));
  ASSERT_TRUE(checkpoint.ok());
  const std::vector<float> v = Values(*checkpoint, "model.layers.0.self_attn.v_proj.weight");
  const std::vector<float> exact = Coordinates(16, kHidden);
  for (size_t i = 0; i < v.size(); ++i) ASSERT_EQ(v[i], BF16ToF32(F32ToBF16(exact[i])));
  EXPECT_NE(v, exact);
}

// F16 (type 1) and BF16 (type 30) in the rows of q that are put back in order; what is F32 stays F32.
TEST_F(GgufImportTest, SixteenBitTensorsStayAsTheyAre) {
  for (const auto& [type, dtype, first] :
       {std::tuple(1U, DType::kF16, 0x3c00), std::tuple(30U, DType::kBF16, 0x3f80)}) {
    SCOPED_TRACE(NameOf(dtype));
    std::vector<uint16_t> stored(kHidden * kHidden);
    std::iota(stored.begin(), stored.end(), static_cast<uint16_t>(first));
    GgufBuilder file = Keys();
    file.Tensor("blk.0.attn_q.weight", {kHidden, kHidden}, type,
                {reinterpret_cast<const char*>(stored.data()), stored.size() * 2});
    const auto result = Import(Weights(file, "blk.0.attn_q.weight").Build());
    ASSERT_TRUE(result.ok()) << result.status();
    const auto checkpoint = Checkpoint::Open(dir_.File("out"));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const auto q = checkpoint->Tensor("model.layers.0.self_attn.q_proj.weight");
    ASSERT_TRUE(q.ok()) << q.status();
    EXPECT_EQ(q->dtype, dtype);
    ASSERT_EQ(q->bytes.size(), stored.size() * 2);
    for (uint64_t row = 0; row < kHidden; ++row) {
      const uint64_t head = row / 16, a = row % 16 / 8, i = row % 8, source = head * 16 + 2 * i + a;
      EXPECT_EQ(std::memcmp(q->bytes.data() + row * kHidden * 2, stored.data() + source * kHidden, kHidden * 2), 0)
          << row;
    }
    for (const auto& [name, view] : checkpoint->tensors()) {
      if (name != "model.layers.0.self_attn.q_proj.weight") {
        EXPECT_EQ(view.dtype, DType::kF32) << name;
      }
    }
    fs::remove_all(dir_.File("out"));
  }
}

TEST_F(GgufImportTest, TheSameImportIsLeftAloneAndAnythingElseIsRefused) {
  GgufBuilder file = Keys();
  const std::string bytes = Weights(file).Build();
  ASSERT_TRUE(Import(bytes).ok());
  const auto written = fs::last_write_time(dir_.File("out/model.safetensors"));
  const auto again = Import(bytes);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->already_there);
  EXPECT_EQ(fs::last_write_time(dir_.File("out/model.safetensors")), written);
  const auto other_dtype = Import(bytes, DType::kBF16);
  EXPECT_EQ(other_dtype.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(Message(other_dtype.status()), HasSubstr("--out"));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_.path()), {}), 2);  // model.gguf, out: no temporary folder
}

TEST_F(GgufImportTest, EachDefectIsOneLineAndLeavesNothing) {
  const auto with_weights = [](GgufBuilder file) { return Weights(file).Build(); };
  GgufBuilder rope = Keys(), parts = Keys(), twice = Keys(), extra = Keys();
  parts.U32("split.count", 3);
  rope.Text("llama.rope.scaling.type", "longrope");
  twice.U32("llama.block_count", 1);
  extra.FloatTensor("blk.0.attn_sinks.weight", {8}, std::vector<float>(8));
  // Keys() has 13 elements in arrays: one more than all may have together.
  constexpr uint64_t kBytes = (uint64_t{1} << 25) - 12;
  GgufBuilder large = Keys();
  large.RawKey("k", 9, GgufBuilder::Bytes<uint32_t>(0) + GgufBuilder::Bytes(kBytes) + std::string(kBytes, '\0'));
  // The last tensor information of a good file: name, dimensions, sizes, type, offset. Its offset becomes the first's.
  std::string shared = with_weights(Keys());
  const size_t last = shared.rfind("blk.0.ffn_down.weight") + 21 + 4 + 16 + 4;
  std::memset(shared.data() + last, 0, 8);
  GgufBuilder k_quant = Keys();
  k_quant.Tensor("blk.0.attn_q.weight", {1, 256}, 10, std::string(84, 'x'));
  const std::string good = with_weights(Keys());
  struct Case {
    const char* name;
    std::string bytes;
    std::vector<const char*> expected;
  };
  const Case kCases[] = {
      {"not GGUF", "hello, world", {"no GGUF file"}},
      {"empty", "", {"no GGUF file"}},
      {"version 1", GgufBuilder(1).Build(), {"version is 1", "expected 2 or 3"}},
      {"header cut", good.substr(0, 100), {"truncated"}},
      {"data cut", good.substr(0, good.size() - 64), {"truncated", "tensor"}},
      {"array count",
       Keys().RawKey("k", 9, GgufBuilder::Bytes<uint32_t>(4) + GgufBuilder::Bytes(~uint64_t{0})).Build(),
       {"key k has 18446744073709551615 elements"}},
      {"many elements", large.Build(), {"key k has 33554420 elements", "at most 33554432 in all arrays together"}},
      {"shared bytes", shared, {"overlap", "token_embd.weight", "blk.0.ffn_down.weight"}},
      {"nested array",
       Keys().RawKey("k", 9, GgufBuilder::Bytes<uint32_t>(9) + GgufBuilder::Bytes<uint64_t>(1)).Build(),
       {"key k is an array of type 9"}},
      {"value type", Keys().RawKey("k", 77, "").Build(), {"key k has value type 77"}},
      {"key twice", with_weights(twice), {"key llama.block_count is there twice"}},
      {"architecture",
       with_weights(Keys("mamba")),
       {"general.architecture is mamba", "expected one of: llama, qwen2, qwen3, gemma3"}},
      {"pre-tokenizer", with_weights(Keys("llama", "tekken")), {"tokenizer.ggml.pre is tekken", "smollm"}},
      {"split file", with_weights(parts), {"split.count is 3"}},
      {"rope scaling", with_weights(rope), {"llama.rope.scaling.type is longrope"}},
      {"unknown tensor", with_weights(extra), {"tensor blk.0.attn_sinks.weight has no place in a llama"}},
      {"tensor type",
       Weights(k_quant, "blk.0.attn_q.weight").Build(),
       {"blk.0.attn_q.weight", "Q2_K", "expected one of: F32, F16"}},
      {"missing tensor",
       [] {
         GgufBuilder file = Keys();
         return Weights(file, "blk.0.ffn_up.weight").Build();
       }(),
       {"model.layers.0.mlp.up_proj.weight is missing"}},
      {"no metadata", GgufBuilder().Build(), {"key general.architecture is missing"}},
  };
  for (const Case& bad : kCases) {
    const auto result = Import(bad.bytes);
    ASSERT_FALSE(result.ok()) << bad.name;
    const std::string message = Message(result.status());
    EXPECT_EQ(message.find('\n'), std::string::npos) << bad.name;
    for (const char* expected : bad.expected) EXPECT_THAT(message, HasSubstr(expected)) << bad.name;
    EXPECT_EQ(std::distance(fs::directory_iterator(dir_.path()), {}), 1) << bad.name;  // model.gguf alone
  }
}

struct Golden {
  const char* name;
  std::vector<int64_t> shape;
  const char* sha256;
};

// Made by tools/goldens/gguf_digests.py from the `gguf` package: an implementation that is not ours.
const std::vector<Golden> kSmolLm2Goldens = {
    {"model.embed_tokens.weight", {49152, 576}, "3fd491c8066dd9dc1a2bf6796701526c82817d95c0ecabacdef3013c2b8bbbaa"},
    {"model.layers.0.mlp.down_proj.weight",
     {576, 1536},
     "0b78b2226f740ed5594510ed990ea6c2846a6a889ab07cf251e4a489df1d75b0"},
    {"model.layers.0.self_attn.k_proj.weight",
     {192, 576},
     "814d239237d0643a10d9468d42e617b687ef032f85ad617389de27cf27f6fd34"},
    {"model.layers.0.self_attn.o_proj.weight",
     {576, 576},
     "f5a388dd8518a19993ba77ec96c3c316685c61c5dcc3342b327fffd32e245cb6"},
    {"model.layers.0.self_attn.q_proj.weight",
     {576, 576},
     "54b377bbfa2deab945dfdba7fb59e0ca3eb74329358bd1b53b635b3ff37c1a56"},
    {"model.layers.0.self_attn.v_proj.weight",
     {192, 576},
     "83be4f4e7c7bb8ef8ec989555865fbc83c335ad5453c62680221960944e25c7e"},
    {"model.layers.17.mlp.gate_proj.weight",
     {1536, 576},
     "1980b6d3b27e9698fb0936ce6f1d2ecc9ae8899c89feacc22fe1bd645aa06ccd"},
    {"model.layers.17.post_attention_layernorm.weight",
     {576},
     "e17887b728b9f4f822aebfbd498cdf907981a74169183deeb9250ec645563b56"},
    {"model.layers.29.mlp.up_proj.weight",
     {1536, 576},
     "f395fcde6e4387e835c50c3ebce13c030a6be52d18edf22dbd7d229d87fdd790"},
    {"model.layers.29.self_attn.k_proj.weight",
     {192, 576},
     "8e99b2450d5f3d53731f52790cc82f80b04341e533306bcfee6669ffa3c79921"},
    {"model.layers.29.self_attn.q_proj.weight",
     {576, 576},
     "2f39f8002e96772faadb7667719e615167fe314589ce699ce97a007e33f2f298"},
    {"model.norm.weight", {576}, "3b87f8e27335e67fc08f159cabfd2d18f205d6c5b225a6f978153552bf01d559"},
};

TEST(SmolLm2Test, ImportedWeightsEqualTheGgufPackagesBitForBit) {
  IHA_REQUIRE_MODEL(model);
  const auto checkpoint = Checkpoint::Open(model);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->tensors().size(), 272U);
  EXPECT_EQ(checkpoint->parameters(), 134515008);
  EXPECT_EQ(checkpoint->config().vocab_size, 49152);
  EXPECT_EQ(checkpoint->config().rms_norm_eps, 1e-5);
  EXPECT_EQ(checkpoint->generation().eos_token_ids, std::vector<int32_t>{2});
  for (const Golden& golden : kSmolLm2Goldens) {
    const auto view = checkpoint->ExpectTensor(golden.name, golden.shape);
    ASSERT_TRUE(view.ok()) << view.status();
    EXPECT_EQ(Sha256Of({reinterpret_cast<const char*>(view->bytes.data()), view->bytes.size()}).Hex(), golden.sha256)
        << golden.name;
  }
  const json tokenizer = json::parse(ReadText(model + "/tokenizer.json"));
  EXPECT_EQ(tokenizer["model"]["merges"].size(), 48900U);
  EXPECT_EQ(tokenizer["model"]["vocab"].size(), 49152U);
  EXPECT_EQ(tokenizer["added_tokens"].size(), 17U);
}

}  // namespace
}  // namespace iha::checkpoint
