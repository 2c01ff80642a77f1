// RULER as a benchmark: what is known without a checkpoint, and the items that one brings.
#include "benchmarks/ruler/ruler.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "benchmarks/prompt_encoder.h"
#include "common/file.h"
#include "model/fake_model.h"
#include "model/tokenizer/tokenizer.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"

namespace iha::benchmarks {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<const Benchmark> Open(const std::string& spec, const std::string& data_root = "") {
  const auto ref = ParseBenchmarkRef(spec);
  EXPECT_TRUE(ref.ok()) << ref.status();
  auto opened = OpenBenchmark(*ref, data_root);
  EXPECT_TRUE(opened.ok()) << opened.status();
  return opened.ok() ? *std::move(opened) : nullptr;
}

std::string Refusal(const std::string& spec) {
  const auto ref = ParseBenchmarkRef(spec);
  const auto opened = OpenBenchmark(*ref, "");
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument) << spec;
  return std::string(opened.status().message());
}

TEST(Ruler, WithoutACheckpointSizesAndNamesAreKnown) {
  IHA_REQUIRE_DATA(data);
  const auto vt = Open("ruler:vt@1024?rows=7", data);
  ASSERT_NE(vt, nullptr);
  EXPECT_EQ(vt->size(), 7);
  EXPECT_EQ(vt->ItemId(3), "vt@1024/3");
  EXPECT_EQ(vt->info().item_tokens, 1024);
  EXPECT_EQ(vt->info().default_sampling.max_new_tokens, 30);
  EXPECT_EQ(vt->info().default_sampling.temperature, 0);
  EXPECT_EQ(vt->ref().options.at("data_seed"), "42");
  EXPECT_EQ(vt->Grade(0, {"a", "b"}, vt->info().metrics)[1][0].unscored, Unscored::kGraderUnavailable);
  // All that decides the prompts but the tokenizer and the data is in the digest.
  EXPECT_NE(PromptDigest(*vt, 7), PromptDigest(*Open("ruler:vt@1024?rows=7&data_seed=43", data), 7));
  EXPECT_NE(PromptDigest(*vt, 7), PromptDigest(*Open("ruler:vt@1025?rows=7", data), 7));
  EXPECT_NE(PromptDigest(*vt, 7), PromptDigest(*vt, 6));
}

TEST(Ruler, BadOptionsAreNamed) {
  EXPECT_THAT(Refusal("ruler:vt@1024?mode=fast"),
              HasSubstr("option mode: found 'fast', expected one of official, seed"));
  EXPECT_THAT(Refusal("ruler:vt@1024?template=chatml"), HasSubstr("option template: found 'chatml'"));
  EXPECT_THAT(Refusal("ruler:vt@1024?data_seed=-1"), HasSubstr("option data_seed"));
  EXPECT_THAT(Refusal("ruler:vt@1024?data_seed=4294967296"), HasSubstr("option data_seed"));
  EXPECT_THAT(Refusal("ruler:vt@1024?rows=0"), HasSubstr("option rows"));
  EXPECT_THAT(Refusal("ruler:vt@1024?allow_over_context=maybe"), HasSubstr("option allow_over_context"));
  EXPECT_THAT(Refusal("ruler:vt@1024?fewshot=1"), HasSubstr("fewshot"));
  EXPECT_THAT(Refusal("ruler:vt@30"), HasSubstr("ruler:vt@30: length 30 is too short: 30 tokens of it are generated"));
  EXPECT_THAT(Refusal("ruler@1024"), HasSubstr("ruler@1024: stands for several cells"));
}

TEST(Ruler, ALengthBeyondTheContextIsRefusedUnlessAllowed) {
  const auto check = [](const std::string& spec) { return CheckContext(*ParseBenchmarkRef(spec), "m", 2048); };
  EXPECT_TRUE(check("ruler:vt@2048").ok());
  EXPECT_EQ(check("ruler:vt@2049").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(check("ruler:vt@2049").message()),
              HasSubstr("ruler:vt@2049: items of 2049 tokens, m has a context of 2048"));
  EXPECT_EQ(check("ruler:vt@2049?allow_over_context=no").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(check("ruler:vt@2049?allow_over_context").ok());
  EXPECT_TRUE(check("gsm8k").ok());
}

class RulerItems : public ::testing::Test {
 protected:
  RulerItems() {
    EXPECT_TRUE(model::MakeFakeCheckpoint(dir_.File("m"), {}).ok());
    auto loaded = tokenizer::Tokenizer::Load(dir_.File("m"));
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    tokenizer_ = *std::move(loaded);
  }

  std::unique_ptr<const Benchmark> Items(const std::string& spec, const std::string& data, ItemRange range) {
    const auto plan = Open(spec, data);
    auto source = plan->ForCheckpoint({.tokenizer = tokenizer_, .items = 4, .cache_dir = dir_.File("cache")});
    EXPECT_TRUE(source.ok()) << source.status();
    if (!source.ok()) return nullptr;
    auto items = (*source)->Items(range);
    EXPECT_TRUE(items.ok()) << items.status();
    return items.ok() ? *std::move(items) : nullptr;
  }

  testing::TempDir dir_;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
};

// A shard's items are the rows of the whole, whichever shard is made first.
TEST_F(RulerItems, ARangeHoldsTheRowsOfTheWhole) {
  IHA_REQUIRE_DATA(data);
  for (const char* spec :
       {"ruler:niah_single_1@2048?template=base", "ruler:niah_single_1@2048?mode=seeded&template=base"}) {
    const auto tail = Items(spec, data, {.begin = 2, .end = 4});
    const auto whole = Items(spec, data, {.begin = 0, .end = 4});
    ASSERT_NE(tail, nullptr);
    ASSERT_NE(whole, nullptr);
    for (int64_t i = 2; i < 4; i++) {
      EXPECT_EQ(tail->Render(i).text, whole->Render(i).text) << spec;
      EXPECT_EQ(tail->Gold(i), whole->Gold(i));
      EXPECT_NE(whole->Render(i).text, whole->Render(i - 1).text);
    }
    EXPECT_EQ(PromptDigest(*tail, 4), PromptDigest(*whole, 4));
  }
}

TEST_F(RulerItems, PromptsFillTheirLengthAndEndWithTheAnswersPrefix) {
  IHA_REQUIRE_DATA(data);
  const auto items = Items("ruler:niah_single_1@2048?template=Phi3", data, {.begin = 0, .end = 2});
  ASSERT_NE(items, nullptr);
  const Prompt prompt = items->Render(1);
  EXPECT_TRUE(prompt.messages.empty());
  EXPECT_TRUE(prompt.stops.empty());
  EXPECT_TRUE(prompt.text.starts_with("<|user|>\nA special magic number is hidden"));
  const size_t header = prompt.text.find("<|end|>\n<|assistant|>\n The special magic number for ");
  ASSERT_NE(header, std::string::npos);
  EXPECT_TRUE(prompt.text.ends_with(" mentioned in the provided text is"));
  const auto ids = PromptEncoder(tokenizer_).Encode(prompt);
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_LE(ids->size() + 128, 2048u);
  EXPECT_NE(prompt.text.find(items->Gold(1)), std::string::npos);
}

// NVIDIA counts rows without the bos token that the model is given all the same: a full official row is one token
// longer than it says, and the token that is drawn last never runs. Seeded rows leave room for it.
TEST_F(RulerItems, WhatRunsFitsTheLengthWithItsBosToken) {
  IHA_REQUIRE_DATA(data);
  const auto text = ReadFile(dir_.File("m/tokenizer.json"));
  ASSERT_TRUE(text.ok()) << text.status();
  auto json = nlohmann::json::parse(*text);
  const nlohmann::json bos = json.at("added_tokens").at(0);
  json["post_processor"] = {{"type", "TemplateProcessing"},
                            {"special_tokens", {{"b", {{"id", "b"}, {"ids", {bos.at("id")}}}}}},
                            {"single", {{{"SpecialToken", {{"id", "b"}}}}, {{"Sequence", {{"id", "A"}}}}}}};
  auto with_bos = tokenizer::Tokenizer::FromJson(json.dump(), "");
  ASSERT_TRUE(with_bos.ok()) << with_bos.status();
  tokenizer_ = *std::move(with_bos);
  size_t longest_official = 0;
  for (size_t length = 2048; length < 2056; ++length) {
    for (const std::string mode : {"official", "seeded"}) {
      const std::string spec = fmt::format("ruler:niah_single_1@{}?template=base&mode={}", length, mode);
      const auto items = Items(spec, data, {.begin = 0, .end = 4});
      ASSERT_NE(items, nullptr);
      for (int64_t i = 0; i < 4; ++i) {
        const auto ids = PromptEncoder(tokenizer_).Encode(items->Render(i));
        ASSERT_TRUE(ids.ok()) << ids.status();
        EXPECT_EQ(ids->front(), bos.at("id").get<int32_t>());
        const size_t with_answer = ids->size() + 128;
        EXPECT_LE(with_answer - 1, length) << spec;
        if (mode == "seeded") {
          EXPECT_LE(with_answer, length) << spec;
        } else {
          longest_official = std::max(longest_official, with_answer);
        }
      }
    }
  }
  EXPECT_GT(longest_official, 1900u);
}

TEST_F(RulerItems, GradesSayWhatWasFound) {
  IHA_REQUIRE_DATA(data);
  const auto items = Items("ruler:niah_multivalue@4096?template=base", data, {.begin = 0, .end = 1});
  ASSERT_NE(items, nullptr);
  const std::string gold = items->Gold(0);
  const std::string first = gold.substr(0, gold.find(','));
  const auto grades = items->Grade(0, {gold, "it is " + first + ".", "no"}, items->info().metrics);
  EXPECT_EQ(grades[0][0].score, (Score{1, 1}));
  EXPECT_EQ(grades[1][0].score, (Score{1, 4}));
  EXPECT_EQ(grades[1][0].extracted, first);
  EXPECT_THAT(grades[1][0].reason,
              HasSubstr("string_match_all: 1 of 4 references in the text; found, not found: [[\"" + first + "\"],[\""));
  EXPECT_EQ(grades[2][0].score, (Score{0, 1}));
  EXPECT_FALSE(grades[2][0].valid);
  EXPECT_EQ(grades[2][0].unscored, Unscored::kScored);
  // The coordinator, which has no rows, can tell whether they are of these texts.
  const auto plan = Open("ruler:niah_multivalue@4096?template=base", data);
  EXPECT_TRUE(plan->CanBeGrade(gold, grades[0][0]));
  EXPECT_TRUE(plan->CanBeGrade("no", grades[2][0]));
  EXPECT_FALSE(plan->CanBeGrade("no", grades[0][0]));
  EXPECT_FALSE(plan->CanBeGrade(gold, grades[2][0]));
}

TEST_F(RulerItems, WhatTheGeneratorCannotMakeIsNamed) {
  IHA_REQUIRE_DATA(data);
  // Ten documents do not fit, fewer cannot be drawn: upstream would try for ever.
  const auto items = Items("ruler:qa_2@1024?template=base", data, {.begin = 0, .end = 4});
  ASSERT_NE(items, nullptr);
  EXPECT_EQ(items->Missing(0), Unscored::kGeneratorDeadEnd);
  EXPECT_EQ(items->Missing(3), Unscored::kGeneratorDeadEnd);
  EXPECT_EQ(items->Render(0).text, "");
  EXPECT_EQ(items->Gold(0), "");
}

TEST_F(RulerItems, ACheckpointWithoutATemplateCannotGiveItsOwn) {
  IHA_REQUIRE_DATA(data);
  const auto plan = Open("ruler:vt@4096?template=model", data);
  const auto none = plan->ForCheckpoint({.tokenizer = tokenizer_, .items = 1});
  if (tokenizer_->chat_templates().text.empty()) {
    EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(none.status().message()), HasSubstr("ruler:vt@4096: "));
  } else {
    EXPECT_TRUE(none.ok()) << none.status();
  }
}

}  // namespace
}  // namespace iha::benchmarks
