// What a damaged or unsupported tokenizer.json gets: one line that names the field, never a crash.
#include <fstream>
#include <nlohmann/json.hpp>

#include "model/tokenizer/tokenizer.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"

namespace iha::tokenizer {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

// A tokenizer of a few letters.
Json Small() {
  return Json::parse(R"({
    "added_tokens": [{"id": 4, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false,
                      "normalized": false, "special": true}],
    "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": {"type": "Fuse"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "c": 3}, "merges": ["a b"]}})");
}

std::string ErrorOf(const std::string& text, const std::string& config = "") {
  const auto tokenizer = Tokenizer::FromJson(text, config);
  if (tokenizer.ok()) return "no error";
  EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string message(tokenizer.status().message());
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_LT(message.size(), 500u);
  return message;
}
// The message for Small() with the value at `pointer` replaced.
std::string ErrorWith(const std::string& pointer, const std::string& value) {
  Json json = Small();
  json[Json::json_pointer(pointer)] = Json::parse(value);
  return ErrorOf(json.dump());
}

TEST(TokenizerErrors, TheSmallOneIsFine) {
  const auto tokenizer = Tokenizer::FromJson(Small().dump(), "");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->Encode("abc<s>a"), (std::vector<int32_t>{2, 3, 4, 0}));
  EXPECT_EQ((*tokenizer)->vocab_size(), 5);
  // Ids without a token, negative and huge ones among them, decode to nothing.
  EXPECT_EQ((*tokenizer)->Decode(std::vector<int32_t>{2, 99, -1, INT32_MAX, INT32_MIN, 3}, false), "abc");
  EXPECT_FALSE((*tokenizer)->IsSpecial(-1));
  EXPECT_EQ((*tokenizer)->TokenText(4), "<s>");
  EXPECT_EQ((*tokenizer)->TokenText(5), std::nullopt);
}

// What could only be approximated is refused, by name.
TEST(TokenizerErrors, WhatCannotBeExactIsRefused) {
  EXPECT_THAT(ErrorWith("/pre_tokenizer", R"({"type": "Split", "pattern": {"Regex": "\\X"}, "behavior": "Isolated",
                                              "invert": false})"),
              HasSubstr("pre_tokenizer.pattern: regex: \\X is not supported"));
  Json json = Small();
  json["normalizer"] = Json::parse(R"({"type": "Replace", "pattern": {"String": "x"}, "content": ""})");
  json["added_tokens"][0]["content"] = "xx";
  json["added_tokens"][0]["normalized"] = true;
  EXPECT_THAT(ErrorOf(json.dump()), HasSubstr("added_tokens[0]: the normalizer leaves nothing of \"xx\""));
  const std::string three = R"({"type": "TemplateProcessing", "special_tokens": {}, "pair": [], "single": [
      {"Sequence": {"id": "A"}}, {"Sequence": {"id": "A"}}, {"Sequence": {"id": "A"}}]})";
  EXPECT_THAT(ErrorWith("/post_processor", R"({"type": "Sequence", "processors": [)" + three + "," + three + "]}"),
              HasSubstr("post_processor.processors[1]: a template after 3 parts, expected one or two"));
}

TEST(TokenizerErrors, Files) {
  const testing::TempDir dir;
  const auto missing = Tokenizer::Load(dir.path()).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(missing.message(), HasSubstr(dir.path() + "/tokenizer.json: missing (expected a Hugging Face tokenizer "
                                                        "file); import or copy it"));
  std::ofstream(dir.File("tokenizer.json")) << Small().dump().substr(0, 100);
  EXPECT_THAT(Tokenizer::Load(dir.path()).status().message(),
              HasSubstr(dir.path() + "/tokenizer.json:1:101: JSON ends too early"));
  std::ofstream(dir.File("tokenizer.json"), std::ios::trunc) << Small().dump();
  std::ofstream(dir.File("tokenizer_config.json")) << R"({"bos_token": {"content": "<s>"}, "eos_token": 3})";
  EXPECT_THAT(Tokenizer::Load(dir.path()).status().message(),
              HasSubstr("/tokenizer_config.json: eos_token: found 3, expected a string"));
  std::ofstream(dir.File("tokenizer_config.json"), std::ios::trunc).flush();
  EXPECT_THAT(Tokenizer::Load(dir.path()).status().message(), HasSubstr("/tokenizer_config.json: is empty"));
  std::ofstream(dir.File("tokenizer_config.json")) << "{}";
  std::ofstream(dir.File("chat_template.jinja")) << "a\xff";
  EXPECT_THAT(Tokenizer::Load(dir.path()).status().message(), HasSubstr("/chat_template.jinja: is not UTF-8"));
  ASSERT_TRUE(std::filesystem::remove(dir.File("chat_template.jinja")));
  ASSERT_EQ(mkfifo(dir.File("chat_template.jinja").c_str(), 0600), 0);
  EXPECT_THAT(Tokenizer::Load(dir.path()).status().message(), HasSubstr("/chat_template.jinja: is no regular file"));
}

TEST(TokenizerErrors, TheTemplateFileWins) {
  const testing::TempDir dir;
  std::ofstream(dir.File("tokenizer.json")) << Small().dump();
  std::ofstream(dir.File("tokenizer_config.json"))
      << R"({"bos_token": {"content": "<s>"}, "chat_template": [{"name": "tool", "template": "t"},
             {"name": "default", "template": "d"}]})";
  const auto from_config = Tokenizer::Load(dir.path());
  ASSERT_TRUE(from_config.ok()) << from_config.status();
  EXPECT_EQ((*from_config)->chat_templates().text, "d");
  EXPECT_EQ((*from_config)->bos_token(), "<s>");
  EXPECT_EQ((*from_config)->eos_token(), "");
  std::ofstream(dir.File("chat_template.jinja")) << "file";
  const auto from_file = Tokenizer::Load(dir.path());
  ASSERT_TRUE(from_file.ok()) << from_file.status();
  EXPECT_EQ((*from_file)->chat_templates().text, "file");
  EXPECT_NE((*from_file)->digest(), (*from_config)->digest());
}

TEST(TokenizerErrors, EveryTruncationIsRefused) {
  const std::string text = Small().dump();
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_EQ(ErrorOf(text.substr(0, length)), fmt::format("tokenizer.json:1:{}: JSON ends too early", length + 1));
  }
}

// As tokenizers 0.23 reads them: a field or token that is there twice has its last value. It also takes two tokens of
// one id, and which of them the id then is changes from load to load; here they are refused.
TEST(TokenizerErrors, JsonThatReadersReadDifferently) {
  const std::string text = Small().dump();
  const auto with = [&text](const std::string& from, const std::string& to) {
    std::string changed = text;
    return changed.replace(changed.find(from), from.size(), to);
  };
  EXPECT_EQ(ErrorOf("\xef\xbb\xbf" + text),
            "tokenizer.json:1:1: begins with a byte order mark; save it as UTF-8 without one");
  EXPECT_THAT(ErrorOf(text, "{\n  \"eos_token\": 'x'}"),
              HasSubstr("tokenizer_config.json:2:16: not valid JSON at \"'x'"));
  EXPECT_EQ(ErrorOf("[]"), "tokenizer.json: found array, expected an object");
  const auto twice = Tokenizer::FromJson(with(R"("c":3)", R"("c":3,"a":5)"), "");
  ASSERT_TRUE(twice.ok()) << twice.status();
  EXPECT_EQ((*twice)->TokenId("a"), 5);
  EXPECT_EQ((*twice)->TokenText(0), std::nullopt);
  EXPECT_EQ(ErrorOf(with(R"("c":3)", R"("c":1)")),
            "tokenizer.json: model.vocab: id 1 belongs to \"b\" and to \"c\", expected one token per id");
  EXPECT_EQ(ErrorOf(with(R"({"added_tokens")", R"({"version":"2.0","added_tokens")")),
            "tokenizer.json: version \"2.0\" is not supported (known: 1.0)");
}

TEST(TokenizerErrors, UnknownComponents) {
  EXPECT_THAT(ErrorWith("/pre_tokenizer", R"({"type": "Foo"})"),
              HasSubstr("tokenizer.json: pre_tokenizer.type \"Foo\" is not supported (known: BertPreTokenizer, Byte"));
  EXPECT_THAT(ErrorWith("/normalizer", R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Nmt"}]})"),
              HasSubstr("normalizer.normalizers[1].type \"Nmt\" is not supported"));
  EXPECT_THAT(ErrorWith("/decoder", R"({"type": "CTC"})"), HasSubstr("decoder.type \"CTC\" is not supported"));
  EXPECT_THAT(ErrorWith("/post_processor", R"({"type": "X"})"), HasSubstr("post_processor.type \"X\""));
  EXPECT_THAT(ErrorWith("/model/type", R"("Unigram")"),
              HasSubstr("model.type \"Unigram\" is not supported (known: BPE)"));
  EXPECT_THAT(ErrorWith("/model/dropout", "0.1"), HasSubstr("model.dropout: found 0.1, expected null or 0"));
  EXPECT_THAT(ErrorWith("/pre_tokenizer", R"({"type": "Split", "pattern": {"String": "x"}, "behavior": "Y"})"),
              HasSubstr("pre_tokenizer.behavior \"Y\" is not supported"));
}

TEST(TokenizerErrors, Vocabulary) {
  EXPECT_THAT(ErrorWith("/model/vocab", "{}"), HasSubstr("model.vocab: found no tokens"));
  EXPECT_THAT(ErrorWith("/model/vocab", "[]"), HasSubstr("model.vocab: found array, expected an object"));
  EXPECT_THAT(ErrorWith("/model/vocab/a", "1"), HasSubstr("model.vocab: id 1 belongs to \"a\" and to \"b\""));
  for (const char* id : {"-1", "1048593", "16777216", "18446744073709551615", "1e99", "1.5", "\"0\"", "null", "[]"}) {
    EXPECT_THAT(ErrorWith("/model/vocab/a", id), HasSubstr("model.vocab[\"a\"]: found")) << id;
  }
  EXPECT_THAT(ErrorWith("/model/unk_token", "\"<unk>\""),
              HasSubstr("model.unk_token: \"<unk>\" is not in the vocabulary"));
}

TEST(TokenizerErrors, Merges) {
  EXPECT_THAT(ErrorWith("/model/merges/0", "\"a x\""), HasSubstr("model.merges[0]: \"x\" is not in the vocabulary"));
  EXPECT_THAT(ErrorWith("/model/merges/0", "[\"b\", \"a\"]"), HasSubstr("model.merges[0]: \"ba\", which it makes"));
  EXPECT_THAT(ErrorWith("/model/merges/0", "\"ab\""), HasSubstr("expected two tokens and one space"));
  EXPECT_THAT(ErrorWith("/model/merges/0", "\"a b c\""), HasSubstr("expected two tokens and one space"));
  EXPECT_THAT(ErrorWith("/model/merges/0", "[\"a\"]"), HasSubstr("model.merges[0]: found array"));
  EXPECT_THAT(ErrorWith("/model/merges", "3"), HasSubstr("model.merges: found 3, expected a list"));
}

TEST(TokenizerErrors, AddedTokens) {
  EXPECT_THAT(ErrorWith("/added_tokens/0/id", "4294967296"), HasSubstr("added_tokens[0].id: found 4294967296"));
  EXPECT_THAT(ErrorWith("/added_tokens/0/content", "7"), HasSubstr("added_tokens[0].content: found 7"));
  EXPECT_THAT(ErrorWith("/added_tokens/0", "{}"), HasSubstr("added_tokens[0].content: missing (expected a string)"));
  EXPECT_THAT(ErrorWith("/added_tokens", "{}"), HasSubstr("added_tokens: found object, expected a list"));
}

TEST(TokenizerErrors, Patterns) {
  const auto split = [](const std::string& regex) {
    return ErrorWith(
        "/pre_tokenizer",
        Json{{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}}.dump());
  };
  EXPECT_THAT(split("("), HasSubstr("pre_tokenizer.pattern: regex: a group is not closed"));
  EXPECT_THAT(split("[a"), HasSubstr("a bracket is not closed"));
  EXPECT_THAT(split("*a"), HasSubstr("nothing to repeat"));
  EXPECT_THAT(split("\\p{Klingon}"), HasSubstr("pre_tokenizer.pattern: regex \"\\p{Klingon}\": unknown property"));
  EXPECT_THAT(split("(?<=a+)b"), HasSubstr("lookbehind"));
  // One line, whatever the pattern holds.
  EXPECT_THAT(split("(?\n)a"), HasSubstr("group option \"(?\\n\" is not supported"));
  EXPECT_THAT(split("(?\xC3\xA9)a"), HasSubstr("group option \"(?\\xC3\" is not supported"));
  EXPECT_THAT(split("(*ACCEPT)"), HasSubstr("callouts are not supported"));
  EXPECT_THAT(split("((a{1000}){1000}){1000}"), HasSubstr("pre_tokenizer.pattern: regex"));
  EXPECT_THAT(split(std::string(5000, '(') + std::string(5000, ')')), HasSubstr("pre_tokenizer.pattern: regex"));
  EXPECT_THAT(split(std::string(200'000, 'a')), HasSubstr("200000 bytes"));
  EXPECT_EQ(split("\\w+"), "no error");
}

TEST(TokenizerErrors, ReplaceStagesThatBlowUpATextAreRefused) {
  const auto chain = [](const char* list, const char* pattern, int stages) {
    Json parts = Json::array();
    for (int i = 0; i < stages; ++i) {
      parts.push_back({{"type", "Replace"}, {"pattern", Json::parse(pattern)}, {"content", "aaaaaaaaaa"}});
    }
    return Json{{"type", "Sequence"}, {list, parts}}.dump();
  };
  const char* letter = R"({"String": "a"})";
  EXPECT_EQ(ErrorWith("/normalizer", chain("normalizers", letter, 3)), "no error");  // 10^3
  EXPECT_THAT(ErrorWith("/normalizer", chain("normalizers", letter, 4)),
              HasSubstr("normalizer: its Replace stages can make a text 10000 times as long, expected at most 1000"));
  EXPECT_THAT(ErrorWith("/decoder", chain("decoders", letter, 4)), HasSubstr("decoder: its Replace stages"));
  EXPECT_THAT(ErrorWith("/normalizer", chain("normalizers", R"({"Regex": "b?"})", 3)), HasSubstr("1331 times"));
  EXPECT_EQ(ErrorWith("/normalizer", chain("normalizers", R"({"Regex": "\\w{10,}"})", 30)), "no error");
}

TEST(TokenizerErrors, Nesting) {
  std::string deep = R"({"type": "NFC"})";
  for (int i = 0; i < 20; ++i) deep = R"({"type": "Sequence", "normalizers": [)" + deep + "]}";
  EXPECT_THAT(ErrorWith("/normalizer", deep), HasSubstr("sequences nested deeper than 16"));
  // Far deeper than any stack: the reader must not recurse.
  const std::string brackets = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_THAT(ErrorOf("{\"model\": " + brackets + "}"), HasSubstr("JSON nested 1000001 deep, expected at most 200"));
  EXPECT_THAT(ErrorOf(R"({"model": {"type": [[[1]]]}})"), HasSubstr("model.type: found array"));
}

TEST(TokenizerErrors, Templates) {
  const std::string piece = R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<x>"}}]})";
  EXPECT_THAT(ErrorWith("/post_processor", piece),
              HasSubstr("post_processor.single[0].SpecialToken.id: \"<x>\" is not in post_processor.special_tokens"));
  EXPECT_THAT(ErrorWith("/post_processor", R"({"type": "TemplateProcessing"})"),
              HasSubstr("post_processor.single: missing (expected a list)"));
}

}  // namespace
}  // namespace iha::tokenizer
