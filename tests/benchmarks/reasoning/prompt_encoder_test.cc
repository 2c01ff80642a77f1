// Prompts to ids: who adds the special tokens, and which day a chat template sees.
#include "benchmarks/prompt_encoder.h"

#include <gtest/gtest.h>

namespace iha::benchmarks {
namespace {

using Ids = std::vector<int32_t>;

// Digits are their own ids, "<s>" is 10; the template writes it, the tokenizer adds it to plain text.
std::shared_ptr<const tokenizer::Tokenizer> Digits() {
  std::string vocab;
  for (int i = 0; i < 10; ++i) vocab += fmt::format("\"{0}\": {0},", i);
  const std::string json = fmt::format(
      R"({{"model": {{"type": "BPE", "vocab": {{{}"<s>": 10}}, "merges": []}},
          "added_tokens": [{{"id": 10, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false,
                            "normalized": false, "special": true}}],
          "post_processor": {{"type": "TemplateProcessing", "special_tokens": {{"<s>": {{"id": "<s>", "ids": [10]}}}},
              "single": [{{"SpecialToken": {{"id": "<s>"}}}}, {{"Sequence": {{"id": "A"}}}}]}}}})",
      vocab);
  auto tokenizer = tokenizer::Tokenizer::FromJson(
      json,
      R"({"bos_token": "<s>", "chat_template": "{{ bos_token }}{{ strftime_now('%d%m') }}{{ messages[0].content }}"})");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

TEST(PromptEncoder, OneBosAndThePromptsDay) {
  PromptEncoder encoder(Digits());
  Prompt prompt;
  prompt.text = "12";
  EXPECT_EQ(*encoder.Encode(prompt), (Ids{10, 1, 2}));
  prompt.messages = {{"user", "9"}};
  EXPECT_EQ(*encoder.Encode(prompt), (Ids{10, 2, 6, 0, 7, 9}));
  prompt.template_date = "2025-12-31";
  EXPECT_EQ(*encoder.Encode(prompt), (Ids{10, 3, 1, 1, 2, 9}));
  prompt.template_date = "2025-01-02";
  EXPECT_EQ(*encoder.Encode(prompt), (Ids{10, 0, 2, 0, 1, 9}));
}

// Digits, "<s>" (10), a space (11) and "12" as one token (12). `adds`: "<s>" stands before every text.
std::shared_ptr<const tokenizer::Tokenizer> Merging(const char* config, bool adds = true) {
  std::string vocab;
  for (int i = 0; i < 10; ++i) vocab += fmt::format("\"{0}\": {0},", i);
  const std::string json = fmt::format(
      R"({{"model": {{"type": "BPE", "vocab": {{{}"<s>": 10, " ": 11, "12": 12}}, "merges": ["1 2"]}},
          "added_tokens": [{{"id": 10, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false,
                            "normalized": false, "special": true}}],
          "post_processor": {{"type": "TemplateProcessing", "special_tokens": {{"<s>": {{"id": "<s>", "ids": [10]}}}},
              "single": [{}{{"Sequence": {{"id": "A"}}}}]}}}})",
      vocab, adds ? R"({"SpecialToken": {"id": "<s>"}}, )" : "");
  auto tokenizer = tokenizer::Tokenizer::FromJson(json, config);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

using Split = std::vector<std::pair<Ids, Ids>>;  // context, what is scored
constexpr char kBos[] = R"({"bos_token": "<s>"})";

Split SplitOf(const std::string& text, const std::vector<std::string>& choices, const char* config = kBos,
              bool adds = true) {
  Prompt prompt;
  prompt.text = text;
  prompt.choices = choices;
  const auto encoded = PromptEncoder(Merging(config, adds)).EncodeChoices(prompt);
  EXPECT_TRUE(encoded.ok()) << encoded.status();
  Split split;
  for (const Continuation& choice : encoded.value_or(std::vector<Continuation>())) {
    split.emplace_back(choice.context, choice.tokens);
  }
  return split;
}

TEST(ChoiceEncoder, SpaceAtThePromptsEndGoesToTheChoice) {
  EXPECT_EQ(SplitOf("3", {" 4", "5"}), (Split{{{10, 3}, {11, 4}}, {{10, 3}, {5}}}));
  EXPECT_EQ(SplitOf("3  ", {" 4", "5"}), (Split{{{10, 3}, {11, 11, 11, 4}}, {{10, 3}, {11, 11, 5}}}));
  EXPECT_EQ(SplitOf("3 4", {"5"}), (Split{{{10, 3, 11, 4}, {5}}})) << "space inside stays";
  EXPECT_EQ(SplitOf("  ", {"5"}), (Split{{{10}, {11, 11, 5}}})) << "nothing but space leaves bos";
}

// Tokens that this vocabulary lacks are dropped, so that what was taken to be space shows in no token; a letter before
// it would be kept as well. Each of these ends str.rstrip()'s work or does not, as Python says.
TEST(ChoiceEncoder, WhatPythonCallsSpace) {
  for (const char* space : {"\t", "\n", "\v", "\f", "\r", "\x1c", "\x1f", "\u0085", "\u00a0", "\u1680", "\u2000",
                            "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"}) {
    EXPECT_EQ(SplitOf(std::string("3 ") + space, {"5"}), (Split{{{10, 3}, {11, 5}}})) << space;
  }
  for (const char* none : {"\u200b", "\u180e", "\ufeff", "\x1b"}) {
    EXPECT_EQ(SplitOf(std::string("3 ") + none, {"5"}), (Split{{{10, 3, 11}, {5}}})) << none;
  }
}

// The prompt's ids are those of the prompt alone; what is scored is counted off from the ids of both together.
TEST(ChoiceEncoder, ATokenAcrossTheSeam) {
  EXPECT_EQ(SplitOf("1", {"23"}), (Split{{{10, 1}, {3}}}));
  EXPECT_EQ(SplitOf("1", {"3"}), (Split{{{10, 1}, {3}}}));
  Prompt prompt;
  prompt.text = "31";
  prompt.choices = {"4", "2"};
  const auto none = PromptEncoder(Merging(kBos)).EncodeChoices(prompt);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(none.status().message(), "choice 1 (\"2\"): this tokenizer gives it no token of its own behind its prompt");
}

TEST(ChoiceEncoder, BehindNothingStandsBosOrEos) {
  EXPECT_EQ(SplitOf("", {"12", " 3"}), (Split{{{10}, {12}}, {{10}, {11, 3}}}));
  EXPECT_EQ(SplitOf("", {"12"}, R"({"eos_token": "<s>"})"), (Split{{{10}, {12}}}));
  EXPECT_EQ(SplitOf("", {"12"}, R"({"bos_token": "7", "eos_token": "<s>"})"), (Split{{{7}, {12}}}));
  EXPECT_EQ(SplitOf("", {"<s>3"}), (Split{{{10}, {3}}})) << "it is there already";
  EXPECT_EQ(SplitOf("  ", {"5", " 4"}, kBos, /*adds=*/false), (Split{{{10}, {11, 11, 5}}, {{10}, {11, 11, 11, 4}}}))
      << "a prompt of space alone has no tokens either";
  EXPECT_EQ(SplitOf("<s>3", {"4"}), (Split{{{10, 3}, {4}}})) << "a text with its own bos gets no other";
  Prompt prompt;
  prompt.choices = {"4"};
  const auto none = PromptEncoder(Merging("{}")).EncodeChoices(prompt);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(none.status().message(),
            "choice 0 (\"4\"): its prompt has no tokens, and this tokenizer no bos or eos to stand there");
}

}  // namespace
}  // namespace iha::benchmarks
