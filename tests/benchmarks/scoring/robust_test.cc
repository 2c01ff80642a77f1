// gsm8k.robust: its labelled table, the gold answers of GSM8K, and published model solutions with their labels.
#include "benchmarks/scoring/extract_robust.h"

#include <gtest/gtest.h>

#include "benchmarks/scoring/answer_metric.h"
#include "benchmarks/scoring/number.h"
#include "tests/support/gz_lines.h"
#include "tests/support/roots.h"

namespace iha::scoring {
namespace {

const AnswerMetric& Robust() { return *FindAnswerMetric("gsm8k.robust"); }

TEST(Robust, LabelledCases) {
  const auto rows = testing::JsonRows("tests/benchmarks/scoring/gsm8k_robust_cases.jsonl");
  ASSERT_GE(rows.size(), 70u);
  for (const auto& row : rows) {
    const std::string output = row["output"];
    const auto answer = RobustNumber(output);
    ASSERT_EQ(answer.has_value(), !row["extracted"].is_null()) << output;
    if (answer.has_value()) {
      EXPECT_EQ(answer->value.ToString(), row["extracted"]) << output;
      EXPECT_EQ(answer->rule, row["rule"]) << output;
    }
    const auto verdict = Robust().judge(row["gold"].get<std::string>(), output);
    ASSERT_TRUE(verdict.ok()) << verdict.status();
    EXPECT_EQ(verdict->correct, row["correct"]) << output << ": " << verdict->reason;
    EXPECT_NE(verdict->reason.find(answer.has_value() ? answer->rule : "nothing extracted"), std::string::npos);
  }
}

TEST(Robust, UnreadableGoldIsAnError) {
  const auto verdict = Robust().judge("no\nidea", "5");
  EXPECT_EQ(verdict.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(verdict.status().message().find("no\\nidea"), std::string::npos);
}

TEST(Robust, HostileTextsStayLinear) {
  // Each would take minutes if a rule rescanned the text for each of its candidates.
  std::string text;
  for (const char* unit : {"\\boxed{", "answer is ", "#### ", "9", "1,", "111,", "111{,}", "-", "{", "1/"}) {
    text.clear();
    while (text.size() < 400000) text += unit;
    const auto answer = RobustNumber(text);
    // A number of 400,000 digits is refused whole.
    if (std::string(unit) == "9") {
      EXPECT_FALSE(answer.has_value());
    }
  }
}

TEST(Robust, EveryGoldAnswerOfGsm8kIsRead) {
  IHA_REQUIRE_DATA(data);
  for (const char* file : {"/gsm8k/test.jsonl", "/gsm8k/train.jsonl"}) {
    for (const auto& row : testing::JsonRows(data + file)) {
      const std::string answer = row["answer"];
      std::string tail = answer.substr(answer.rfind("#### ") + 5);
      std::erase(tail, ',');
      const auto read = RobustNumber(answer);
      ASSERT_TRUE(read.has_value()) << answer;
      EXPECT_EQ(read->value.ToString(), tail);
    }
  }
}

// The publisher graded its models' solutions by their last line "A: n". The counts must be the published ones.
TEST(Robust, PublishedSolutionsGetTheirPublishedLabels) {
  IHA_REQUIRE_DATA(data);
  const auto rows = testing::JsonRows(data + "/gsm8k/example_model_solutions.jsonl");
  const std::pair<const char*, int> counts[] = {
      {"6b_finetuning", 286}, {"6b_verification", 515}, {"175b_finetuning", 458}, {"175b_verification", 742}};
  for (const auto& [model, published] : counts) {
    int correct = 0;
    for (const auto& row : rows) {
      const std::string gold = row["ground_truth"], output = row[model]["solution"];
      const auto verdict = Robust().judge(gold, output);
      ASSERT_TRUE(verdict.ok()) << verdict.status();
      correct += verdict->correct ? 1 : 0;
      EXPECT_EQ(verdict->correct, row[model]["is_correct"]) << model << ": " << output << "\n" << verdict->reason;
    }
    EXPECT_EQ(correct, published) << model;
  }
}

}  // namespace
}  // namespace iha::scoring
