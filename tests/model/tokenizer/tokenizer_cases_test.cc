// Every line of the labelled tokenizer cases, encoded, decoded whole and decoded as a stream.
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/file.h"
#include "model/tokenizer/tokenizer.h"
#include "tests/support/roots.h"

namespace iha::tokenizer {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<int32_t>;

std::vector<Json> ReadLines(const std::string& path) {
  std::vector<Json> rows;
  std::ifstream in(path);
  EXPECT_TRUE(in.good()) << path;
  for (std::string line; std::getline(in, line);) rows.push_back(Json::parse(line));
  return rows;
}

std::string StreamDecode(const Tokenizer& tokenizer, const Ids& ids, bool skip) {
  DecodeStream stream(tokenizer, skip);
  std::string text;
  for (const int32_t id : ids) text += stream.Push(id);
  return text + stream.Flush();
}

void ExpectDecoded(const Tokenizer& tokenizer, const Ids& ids, bool skip, const std::string& expected,
                   const std::string& where) {
  EXPECT_EQ(tokenizer.Decode(ids, skip), expected) << where << " skip=" << skip;
  EXPECT_EQ(StreamDecode(tokenizer, ids, skip), expected) << where << " stream, skip=" << skip;
}

class Families : public ::testing::TestWithParam<const char*> {};

TEST_P(Families, EqualTheLabels) {
  IHA_REQUIRE_CASES(cases);
  const std::string dir = cases + "/tokenizers/" + GetParam();
  const auto loaded = Tokenizer::Load(dir);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const Tokenizer& tokenizer = **loaded;
  const std::vector<Json> rows = ReadLines(dir + "/cases.jsonl");
  ASSERT_EQ(rows.size(), 300u);
  for (const Json& row : rows) {
    const std::string where = "cases.jsonl id " + row["id"].dump();
    const auto text = row["text"].get<std::string>();
    const auto ids = row["ids"].get<Ids>();
    const auto ids_special = row.value("ids_special", ids);
    EXPECT_EQ(tokenizer.Encode(text), ids) << where;
    EXPECT_EQ(tokenizer.Encode(text, {.add_special = true}), ids_special) << where;
    const auto decoded = row.value("decoded", text);
    ExpectDecoded(tokenizer, ids, false, decoded, where);
    ExpectDecoded(tokenizer, ids, true, row.value("decoded_skip", decoded), where);
    if (row.contains("decoded_special")) {
      ExpectDecoded(tokenizer, ids_special, false, row["decoded_special"], where);
      ExpectDecoded(tokenizer, ids_special, true, row["decoded_special_skip"], where);
    }
  }
  for (const Json& row : ReadLines(dir + "/decode.jsonl")) {
    const std::string where = "decode.jsonl " + row["ids"].dump();
    const auto ids = row["ids"].get<Ids>();
    ExpectDecoded(tokenizer, ids, false, row["decoded"], where);
    ExpectDecoded(tokenizer, ids, true, row["decoded_skip"], where);
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, Families,
                         ::testing::Values("gpt2", "llama3", "qwen2", "smollm", "llama2", "mistral", "gemma"),
                         [](const auto& family) { return std::string(family.param); });

}  // namespace
}  // namespace iha::tokenizer
