// The real SmolLM2 tokenizer (49,152 tokens) against the labels of a real run.
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/child_process.h"
#include "model/tokenizer/tokenizer.h"
#include "tests/support/roots.h"

namespace iha::tokenizer {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<int32_t>;

std::unique_ptr<const Tokenizer> LoadSmolLm2(const std::string& cases) {
  ChildOptions options;
  options.argv = {"gzip", "-dc", cases + "/ruler_rows/smollm2_tokenizer/tokenizer.json.gz"};
  const auto unpacked = RunChild(options, "", {.stdout_bytes = size_t{64} << 20});
  if (!unpacked.ok() || !unpacked->exit.ok()) return nullptr;
  std::ifstream config(cases + "/ruler_rows/smollm2_tokenizer/tokenizer_config.json");
  auto tokenizer = Tokenizer::FromJson(unpacked->out, std::string{std::istreambuf_iterator<char>(config), {}});
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

TEST(SmolLm2, EqualsTheLabels) {
  IHA_REQUIRE_CASES(cases);
  const auto tokenizer = LoadSmolLm2(cases);
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->vocab_size(), 49152);
  EXPECT_EQ(tokenizer->TokenId(tokenizer->bos_token()), 1);
  EXPECT_EQ(tokenizer->TokenId(tokenizer->eos_token()), 2);
  EXPECT_TRUE(tokenizer->IsSpecial(16));
  EXPECT_FALSE(tokenizer->IsSpecial(17));
  EXPECT_THAT(tokenizer->chat_templates().text, ::testing::StartsWith("{% for message in messages %}"));
  std::ifstream in(cases + "/hf_parity/tokenizer.jsonl");
  int rows = 0;
  for (std::string line; std::getline(in, line); ++rows) {
    const Json row = Json::parse(line);
    const auto text = row["text"].get<std::string>();
    const Ids ids = tokenizer->Encode(text);
    EXPECT_EQ(ids, row["ids"].get<Ids>()) << line;
    EXPECT_EQ(tokenizer->Encode(text, {.add_special = true}), ids) << line;
    EXPECT_EQ(tokenizer->Decode(ids, false), row.value("decoded", text)) << line;
  }
  EXPECT_GT(rows, 100);
}

TEST(SmolLm2, DecodesWholeAndAsAStream) {
  IHA_REQUIRE_CASES(cases);
  const auto tokenizer = LoadSmolLm2(cases);
  ASSERT_NE(tokenizer, nullptr);
  std::ifstream in(cases + "/hf_parity/decode.jsonl");
  int rows = 0;
  for (std::string line; std::getline(in, line); ++rows) {
    const Json row = Json::parse(line);
    const auto ids = row["ids"].get<Ids>();
    for (const bool skip : {false, true}) {
      const auto expected = row[skip ? "text_skip_special" : "text"].get<std::string>();
      EXPECT_EQ(tokenizer->Decode(ids, skip), expected) << line;
      DecodeStream stream(*tokenizer, skip);
      std::string text;
      for (const int32_t id : ids) text += stream.Push(id);
      EXPECT_EQ(text + stream.Flush(), expected) << line;
    }
  }
  EXPECT_GT(rows, 50);
}

// A label of the special token's text as ordinary text: its bytes, not the token.
TEST(SmolLm2, SpecialTextCanBeOrdinaryText) {
  IHA_REQUIRE_CASES(cases);
  const auto tokenizer = LoadSmolLm2(cases);
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->Encode("<|im_end|>"), Ids{2});
  const Ids plain = tokenizer->Encode("<|im_end|>", {.parse_special = false});
  EXPECT_GT(plain.size(), 1u);
  EXPECT_EQ(std::count(plain.begin(), plain.end(), 2), 0);
  EXPECT_EQ(tokenizer->Decode(plain, true), "<|im_end|>");
}

}  // namespace
}  // namespace iha::tokenizer
