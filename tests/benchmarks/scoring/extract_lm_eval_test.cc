// The GSM8K filters of lm-evaluation-harness: golden vectors, and every row that the real tool labelled.
#include "benchmarks/scoring/extract_lm_eval.h"

#include <gtest/gtest.h>

#include "benchmarks/scoring/answer_metric.h"
#include "tests/support/gz_lines.h"
#include "tests/support/roots.h"

namespace iha::scoring {
namespace {

struct Vector {
  const char* text;
  const char* strict;  // normalised
  const char* flexible;
};

TEST(LmEvalExtract, GoldenVectors) {
  const Vector vectors[] = {
      {"#### 18", "18", "18"},
      {"#### $18", "[invalid]", "18"},
      {"#### 1,000", "1000", "1000"},
      {"#### 18.", "18", "18"},
      {"#### 18.00", "18.00", "18.00"},
      {"costs $29.00.", "[invalid]", "29.00"},
      {"= 18...", "[invalid]", "18.."},
      {"is 18 dollars ...", "[invalid]", ".."},
      {"#### 3\n#### 7", "3", "7"},
      {"1/2", "[invalid]", "2"},
      {"\u22125", "[invalid]", "5"},
      {"it is 7,", "[invalid]", "7"},
      {"10-7", "[invalid]", "-7"},
      {"-$5", "[invalid]", "-5"},
      {"$-5", "[invalid]", "-5"},
      {"#### .", "", "[invalid]"},
      {"", "[invalid]", "[invalid]"},
      {"##### 5", "5", "5"},
      {"#### -", "[invalid]", "[invalid]"},
  };
  for (const Vector& v : vectors) {
    EXPECT_EQ(LmEvalNormalise(LmEvalGsm8kStrict(v.text)), v.strict) << v.text;
    EXPECT_EQ(LmEvalNormalise(LmEvalGsm8kFlexible(v.text)), v.flexible) << v.text;
  }
}

TEST(LmEvalExtract, CotStrictBacktracksForOneMoreCharacter) {
  EXPECT_EQ(LmEvalGsm8kCotStrict("The answer is 18"), "1");
  EXPECT_EQ(LmEvalGsm8kCotStrict("The answer is 18\n"), "1");
  EXPECT_EQ(LmEvalGsm8kCotStrict("The answer is 5"), "[invalid]");
  EXPECT_EQ(LmEvalGsm8kCotStrict("The answer is 7. Next"), "7.");
  EXPECT_EQ(LmEvalGsm8kCotStrict("The answer is 7."), "7");
  EXPECT_EQ(LmEvalGsm8kCotStrict("The answer is 5\nThe answer is 6!"), "6");
}

TEST(LmEvalExtract, NormaliseAppliesItsSubstitutionsInOrder) {
  EXPECT_EQ(LmEvalNormalise("a #### b #### $1,0"), "10");
  EXPECT_EQ(LmEvalNormalise("##,## 5"), "5");  // commas go first, which can complete the mark
  EXPECT_EQ(LmEvalNormalise("18.."), "18.");
  EXPECT_EQ(LmEvalNormalise("18.\n"), "18\n");  // $ matches before a final newline
  EXPECT_EQ(LmEvalNormalise("."), "");
  EXPECT_EQ(LmEvalNormalise("ABC"), "abc");
}

void CheckRows(const std::string& file, const char* strict_name, const char* flexible_name) {
  const AnswerMetric* strict = FindAnswerMetric(strict_name);
  const AnswerMetric* flexible = FindAnswerMetric(flexible_name);
  ASSERT_NE(strict, nullptr);
  ASSERT_NE(flexible, nullptr);
  const auto rows = testing::JsonRows(file);
  ASSERT_EQ(rows.size(), 400u);
  for (const auto& row : rows) {
    const std::string id = row["id"], gold = row["gold"], output = row["output"];
    EXPECT_EQ(LmEvalNormalise(gold), row["gold_norm"]) << id;
    for (const auto& [metric, key] : {std::pair{strict, std::string("strict")}, {flexible, std::string("flexible")}}) {
      const auto verdict = metric->judge(gold, output);
      ASSERT_TRUE(verdict.ok()) << verdict.status();
      EXPECT_EQ(verdict->extraction.text, row[key]) << id << " " << key;
      EXPECT_EQ(LmEvalNormalise(verdict->extraction.text), row[key + "_norm"]) << id << " " << key;
      EXPECT_EQ(verdict->correct, row[key + "_exact_match"] == 1) << id << " " << key;
    }
  }
}

TEST(LmEvalExtract, Gsm8kRows) {
  IHA_REQUIRE_CASES(cases);
  CheckRows(cases + "/lm_eval/scores_gsm8k.jsonl.gz", "gsm8k.strict_match", "gsm8k.flexible_extract");
}

TEST(LmEvalExtract, Gsm8kCotRows) {
  IHA_REQUIRE_CASES(cases);
  CheckRows(cases + "/lm_eval/scores_gsm8k_cot.jsonl.gz", "gsm8k_cot.strict_match", "gsm8k_cot.flexible_extract");
}

TEST(LmEvalExtract, Gsm8kCotLlamaRows) {
  IHA_REQUIRE_CASES(cases);
  CheckRows(cases + "/lm_eval/scores_gsm8k_cot_llama.jsonl.gz", "gsm8k_cot_llama.strict_match",
            "gsm8k_cot_llama.flexible_extract");
}

}  // namespace
}  // namespace iha::scoring
