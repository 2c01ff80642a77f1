#include "model/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

#include "tests/model/checkpoint/random_checkpoint.h"
#include "tests/model/checkpoint/test_files.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"

namespace iha::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::ReadText;
using testing::WriteText;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::vector<std::string> Folders(const std::string& root) {
  std::vector<std::string> result;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (fs::exists(entry.path() / "config.json")) result.push_back(entry.path().string());
  }
  std::sort(result.begin(), result.end());
  return result;
}

TEST(CheckpointTest, EveryFamilyCaseOpensAndBothConfigFormsAreOneFunction) {
  IHA_REQUIRE_CASES(cases);
  int pairs = 0;
  for (const std::string& folder : Folders(cases + "/hf_families")) {
    const auto checkpoint = Checkpoint::Open(folder);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_TRUE(checkpoint->warnings().empty()) << checkpoint->warnings().front();
    if (!folder.ends_with(".v4")) continue;
    const auto newer = Checkpoint::Open(folder.substr(0, folder.size() - 3));
    ASSERT_TRUE(newer.ok()) << newer.status();
    EXPECT_EQ(checkpoint->config().FunctionBytes(), newer->config().FunctionBytes()) << folder;
    EXPECT_EQ(checkpoint->config().layers, newer->config().layers) << folder;
    EXPECT_EQ(checkpoint->config().ropes, newer->config().ropes) << folder;
    EXPECT_EQ(checkpoint->WeightsDigest(), newer->WeightsDigest()) << folder;
    ++pairs;
  }
  EXPECT_EQ(pairs, 15);
}

TEST(CheckpointTest, EveryAttentionOracleOpens) {
  IHA_REQUIRE_CASES(cases);
  int count = 0;
  for (const std::string& folder : Folders(cases + "/attention_oracles")) {
    const auto checkpoint = Checkpoint::Open(folder);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_TRUE(checkpoint->warnings().empty()) << checkpoint->warnings().front();
    EXPECT_TRUE(checkpoint->config().has_iha_eval);
    ++count;
  }
  EXPECT_EQ(count, 47);
}

// expect.txt: each line must occur in the message; " | " separates alternatives.
TEST(CheckpointTest, EveryBadCheckpointIsRefusedInOneLine) {
  IHA_REQUIRE_CASES(cases);
  int count = 0;
  for (const std::string& folder : Folders(cases + "/attention_oracles/bad")) {
    const auto checkpoint = Checkpoint::Open(folder);
    ASSERT_FALSE(checkpoint.ok()) << folder;
    const std::string message = Lower(Message(checkpoint.status()));
    EXPECT_EQ(message.find('\n'), std::string::npos);
    std::ifstream expectations(folder + "/expect.txt");
    for (std::string line; std::getline(expectations, line);) {
      bool found = false;
      for (size_t begin = 0; begin <= line.size();) {
        const size_t end = std::min(line.find(" | ", begin), line.size());
        found |= message.find(Lower(line.substr(begin, end - begin))) != std::string::npos;
        begin = end + 3;
      }
      EXPECT_TRUE(found) << folder << "\n  expected: " << line << "\n  message: " << message;
    }
    ++count;
  }
  EXPECT_EQ(count, 12);
}

// ---- a small checkpoint of our own -----------------------------------------------------------------------------

constexpr const char* kConfig = R"({"model_type": "llama", "vocab_size": 4, "hidden_size": 4, "intermediate_size": 6,
  "num_hidden_layers": 1, "num_attention_heads": 2})";

// Writes the tensors that kConfig calls for, but for those whose name contains `without`.
void WriteWeights(const std::string& path, std::string_view without = "none", std::string_view only = "",
                  std::vector<NamedTensor> extra = {}) {
  static const std::vector<float> kZeros(64);
  const auto config = ParseModelConfig(kConfig);
  ASSERT_TRUE(config.ok()) << config.status();
  for (const TensorSpec& spec : RequiredTensors(*config)) {
    if (spec.name.find(without) != std::string::npos || spec.name.find(only) == std::string::npos) continue;
    int64_t elements = 1;
    for (const int64_t size : spec.shape) elements *= size;
    extra.push_back(
        {{spec.name, DType::kF32, spec.shape}, std::as_bytes(std::span(kZeros).first(static_cast<size_t>(elements)))});
  }
  ASSERT_TRUE(WriteSafetensors(path, extra).ok());
}

class OwnCheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override { WriteText(dir_.File("config.json"), kConfig); }
  void ExpectRefused(const std::vector<const char*>& expected) {
    const auto checkpoint = Checkpoint::Open(dir_.path());
    ASSERT_FALSE(checkpoint.ok());
    const std::string message = Message(checkpoint.status());
    EXPECT_TRUE(message.starts_with(dir_.path())) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
    for (const char* part : expected) EXPECT_THAT(message, HasSubstr(part));
  }
  iha::testing::TempDir dir_;
};

TEST_F(OwnCheckpointTest, MissingFilesAreNamed) {
  ExpectRefused({"no model.safetensors"});
  WriteText(dir_.File("pytorch_model.bin"), "x");
  ExpectRefused({"pytorch_model.bin", "pickle is never read"});
  fs::remove(dir_.File("config.json"));
  ExpectRefused({"no config.json"});
  EXPECT_THAT(Message(Checkpoint::Open(dir_.File("absent")).status()), HasSubstr("absent: no such folder"));
  EXPECT_THAT(Message(Checkpoint::Open(std::string(5000, 'a')).status()), HasSubstr("no such folder"));
  fs::create_symlink("config.json", dir_.File("config.json"));  // a loop
  ExpectRefused({"no config.json"});
}

TEST_F(OwnCheckpointTest, ShardsAreThoseThatTheIndexNames) {
  WriteWeights(dir_.File("a.safetensors"), ".mlp.");
  WriteText(dir_.File("b.safetensors"), "never read");
  const auto index = [&](const std::string& map) {
    WriteText(dir_.File("model.safetensors.index.json"), "{\"weight_map\": " + map + "}");
  };
  index(R"({"model.norm.weight": "a.safetensors"})");
  ExpectRefused({"model.layers.0.mlp.gate_proj.weight is missing", "expected shape [6, 4]"});
  index(R"({"model.norm.weight": "c.safetensors"})");
  ExpectRefused({"index.json", "shard c.safetensors", "not in the folder"});
  index(R"({"model.norm.weight": "../a.safetensors"})");
  ExpectRefused({"model.norm.weight is ../a.safetensors", "same folder"});
  index(R"({"x": "a.safetensors"})");
  ExpectRefused({"a.safetensors holds x", "no tensor of that name"});
  index("[]");
  ExpectRefused({"weight_map is missing or empty"});
  WriteWeights(dir_.File("c.safetensors"), "none", ".mlp.");
  index(R"({"model.norm.weight": "a.safetensors", "model.layers.0.mlp.up_proj.weight": "c.safetensors"})");
  EXPECT_TRUE(Checkpoint::Open(dir_.path()).ok());
  WriteWeights(dir_.File("c.safetensors"), "none", ".mlp.", {{{"lm_head.weight", DType::kF32, {0}}, {}}});
  ExpectRefused({"tensor lm_head.weight is in", "expected it once"});
}

TEST_F(OwnCheckpointTest, DtypesAndUnreadTensors) {
  const std::vector<float> zeros(16);
  WriteWeights(dir_.File("model.safetensors"), "lm_head", "",
               {{{"lm_head.weight", DType::kI32, {4, 4}}, std::as_bytes(std::span(zeros))}});
  ExpectRefused({"tensor lm_head.weight has dtype I32", "expected F32, F16 or BF16"});
  WriteWeights(
      dir_.File("model.safetensors"), "none", "",
      {{{"model.layers.0.self_attn.attn_gate.weight", DType::kF32, {1}}, std::as_bytes(std::span(zeros).first(1))},
       {{"model.layers.0.self_attn.rotary_emb.inv_freq", DType::kF32, {0}}, {}}});
  const auto checkpoint = Checkpoint::Open(dir_.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_THAT(checkpoint->warnings(), ::testing::ElementsAre(HasSubstr("attn_gate.weight is read by no layer")));
}

// As transformers 5 reads it, but that it takes a stored head that differs, and transformers 4 does not.
TEST_F(OwnCheckpointTest, TheTiedHeadUnderEitherName) {
  WriteText(dir_.File("config.json"), std::string(kConfig).insert(1, "\"tie_word_embeddings\": true, "));
  const std::string path = dir_.File("model.safetensors");
  std::vector<float> head(16);
  const auto bytes = [&] { return std::as_bytes(std::span(head)); };
  WriteWeights(path, "lm_head");
  const Digest digest = Checkpoint::Open(dir_.path())->WeightsDigest();

  WriteWeights(path, "embed");  // lm_head alone
  const auto renamed = Checkpoint::Open(dir_.path());
  ASSERT_TRUE(renamed.ok()) << renamed.status();
  EXPECT_THAT(renamed->warnings(), ::testing::IsEmpty());
  EXPECT_EQ(renamed->WeightsDigest(), digest);

  WriteWeights(path);  // both, equal
  EXPECT_EQ(Checkpoint::Open(dir_.path())->WeightsDigest(), digest);
  const std::vector<uint16_t> narrow(16);
  WriteWeights(path, "lm_head", "", {{{"lm_head.weight", DType::kBF16, {4, 4}}, std::as_bytes(std::span(narrow))}});
  EXPECT_EQ(Checkpoint::Open(dir_.path())->WeightsDigest(), digest);

  head.back() = -0.0f;
  WriteWeights(path, "lm_head", "", {{{"lm_head.weight", DType::kF32, {4, 4}}, bytes()}});
  ExpectRefused({"model.safetensors: tensor lm_head.weight differs from model.embed_tokens.weight",
                 "tie_word_embeddings", "set it to false"});
  const std::vector<uint16_t> other(16, 1);
  WriteWeights(path, "lm_head", "", {{{"lm_head.weight", DType::kF16, {4, 4}}, std::as_bytes(std::span(other))}});
  ExpectRefused({"lm_head.weight differs"});
  WriteWeights(path, "lm_head", "", {{{"lm_head.weight", DType::kF32, {2, 8}}, bytes()}});
  ExpectRefused({"lm_head.weight differs"});
  WriteText(dir_.File("config.json"), kConfig);  // untied: an embedding is never taken from the head
  WriteWeights(path, "embed");
  ExpectRefused({"model.embed_tokens.weight is missing"});
}

TEST_F(OwnCheckpointTest, DigestIsOfWhatTheForwardPassReads) {
  WriteWeights(dir_.File("model.safetensors"));
  const Digest whole = Checkpoint::Open(dir_.path())->WeightsDigest();
  // Another shard layout, another file name, an unread tensor, another spelling of the config: the same model.
  fs::remove(dir_.File("model.safetensors"));
  WriteWeights(dir_.File("a.safetensors"), ".mlp.", "", {{{"unread", DType::kF32, {0}}, {}}});
  WriteWeights(dir_.File("c.safetensors"), "none", ".mlp.");
  WriteText(dir_.File("model.safetensors.index.json"),
            R"({"weight_map": {"unread": "a.safetensors", "model.layers.0.mlp.up_proj.weight": "c.safetensors"}})");
  WriteText(dir_.File("config.json"), std::string(kConfig).insert(1, "\"rope_theta\": 1e4, \"new_field\": 1, "));
  const auto sharded = Checkpoint::Open(dir_.path());
  ASSERT_TRUE(sharded.ok()) << sharded.status();
  EXPECT_EQ(sharded->WeightsDigest(), whole);
  EXPECT_EQ(sharded->WeightsDigest(3), whole);
  for (const auto& [name, view] : sharded->tensors()) sharded->DropPages(view);
  EXPECT_EQ(sharded->WeightsDigest(), whole);  // dropped pages are read again
  // Another function or other bytes: another model.
  WriteText(dir_.File("config.json"), std::string(kConfig).insert(1, "\"rope_theta\": 2e4, "));
  EXPECT_NE(Checkpoint::Open(dir_.path())->WeightsDigest(), whole);
  WriteText(dir_.File("config.json"), kConfig);
  EXPECT_EQ(Checkpoint::Open(dir_.path())->WeightsDigest(), whole);
  std::string bytes = ReadText(dir_.File("c.safetensors"));
  bytes.back() = 1;
  WriteText(dir_.File("c.safetensors"), bytes);
  EXPECT_NE(Checkpoint::Open(dir_.path())->WeightsDigest(), whole);
}

TEST_F(OwnCheckpointTest, EosIdsComeFromTheGenerationConfigIfItNamesAny) {
  WriteWeights(dir_.File("model.safetensors"));
  EXPECT_EQ(Checkpoint::Open(dir_.path())->generation().eos_token_ids, std::vector<int32_t>{2});
  WriteText(dir_.File("generation_config.json"), R"({"eos_token_id": [3, 1]})");
  EXPECT_EQ(Checkpoint::Open(dir_.path())->generation().eos_token_ids, (std::vector<int32_t>{3, 1}));
  WriteText(dir_.File("generation_config.json"), "{}");
  EXPECT_EQ(Checkpoint::Open(dir_.path())->generation().eos_token_ids, std::vector<int32_t>{2});
  WriteText(dir_.File("generation_config.json"), "{");
  ExpectRefused({"generation_config.json: no valid JSON"});
}

TEST(WeightsDigestTest, ThreadsAreBoundByTheWork) {
  constexpr int64_t kMib = 1 << 20;
  EXPECT_EQ(DigestThreads(8, 300, 500 * kMib), 8);
  EXPECT_EQ(DigestThreads(1000, 5, 500 * kMib), 5);
  EXPECT_EQ(DigestThreads(1000, 300, 3 * kMib), 3);
  EXPECT_EQ(DigestThreads(8, 300, 5), 1);
  EXPECT_EQ(DigestThreads(8, 0, 0), 1);
  EXPECT_EQ(DigestThreads(0, 300, 500 * kMib), 1);
  EXPECT_EQ(DigestThreads(-3, 300, 500 * kMib), 1);
}

TEST(WeightsDigestTest, ThreadsChangeNoBit) {
  const iha::testing::TempDir dir;
  testing::WriteRandomCheckpoint(dir.path(), R"({"model_type": "llama", "vocab_size": 4096, "hidden_size": 256,
      "intermediate_size": 512, "num_hidden_layers": 1, "num_attention_heads": 4, "tie_word_embeddings": true})");
  const auto checkpoint = Checkpoint::Open(dir.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  ASSERT_GE(DigestThreads(4, checkpoint->tensors().size(), checkpoint->parameters() * 4), 4);
  EXPECT_EQ(checkpoint->WeightsDigest(4), checkpoint->WeightsDigest(1));
}

}  // namespace
}  // namespace iha::checkpoint
