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

}  // namespace
}  // namespace iha::benchmarks
