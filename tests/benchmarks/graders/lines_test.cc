// The pure functions behind `iha-eval score` and `iha-eval vote`.
#include "benchmarks/graders/lines.h"

#include <gtest/gtest.h>

#include "tests/support/gz_lines.h"
#include "tests/support/roots.h"

namespace iha::benchmarks {
namespace {

TEST(ScoreLine, CompatLogsWhatItsToolLogsAndRobustGivesTheCanonicalNumber) {
  Graders graders;
  const auto strict = ScoreLine(graders, "gsm8k.strict_match", "x\n#### 1000", "so\n#### 1,000");
  ASSERT_TRUE(strict.ok()) << strict.status();
  EXPECT_EQ(strict->extracted, "1,000");
  EXPECT_TRUE(strict->correct);
  const auto invalid = ScoreLine(graders, "gsm8k.strict_match", "#### 5", "no idea");
  EXPECT_EQ(invalid->extracted, "[invalid]");
  EXPECT_FALSE(invalid->correct);
  const auto robust = ScoreLine(graders, "gsm8k.robust", "#### 29", "costs $29.00.");
  EXPECT_EQ(robust->extracted, "29");
  EXPECT_TRUE(robust->correct);
  EXPECT_NE(robust->reason.find("last number"), std::string::npos);
  EXPECT_FALSE(ScoreLine(graders, "gsm8k.robust", "#### 29", "none")->extracted.has_value());
}

TEST(ScoreLine, UnknownMetricListsTheKnownOnes) {
  Graders graders;
  const auto result = ScoreLine(graders, "gsm8k.stric", "1", "1");
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(result.status().message().find("gsm8k.strict_match"), std::string::npos);
}

TEST(VoteLine, GroupsByNormalisedAnswer) {
  Graders graders;
  const std::vector<std::string> outputs = {"#### 1,000", "#### 7", "#### 1000", "none"};
  const auto vote = VoteLine(graders, "gsm8k.strict_match", scoring::VoteRule::kNsTieMean, 4, "#### 1000", outputs);
  ASSERT_TRUE(vote.ok()) << vote.status();
  EXPECT_EQ(vote->winner, "1,000");
  EXPECT_EQ(vote->correct, scoring::Rational(1));
  EXPECT_EQ(vote->tie, scoring::Rational(0));
  EXPECT_EQ(vote->invalid, 1);
  EXPECT_FALSE(VoteLine(graders, "gsm8k.robust", scoring::VoteRule::kNsTieMean, 5, "1", outputs).ok());
}

TEST(VoteLine, MathAnswersAreGroupedByEquivalence) {
  Graders graders;
  const std::vector<std::string> outputs = {"\\boxed{0.5}", "so \\boxed{3}",    "\\boxed{\\frac{1}{2}}",
                                            "\\boxed{3}.",  "it is $\\frac12$", ""};
  const auto vote = VoteLine(graders, "math.robust", scoring::VoteRule::kNsTieMean, 6, "1/2", outputs);
  ASSERT_TRUE(vote.ok()) << vote.status();
  EXPECT_EQ(vote->winner, "0.5");
  EXPECT_EQ(vote->correct, scoring::Rational(1));
  EXPECT_EQ(vote->invalid, 1);
  const auto hendrycks = VoteLine(graders, "math.hendrycks", scoring::VoteRule::kFirstSeen, 3, "\\boxed{\\frac12}",
                                  {"$0.5$", "$7$", "$1/2$"});
  ASSERT_TRUE(hendrycks.ok()) << hendrycks.status();
  EXPECT_EQ(hendrycks->winner, "0.5");
  EXPECT_EQ(hendrycks->correct, scoring::Rational(1));
}

// first_seen is the rule of lm-evaluation-harness, so its metrics vote as it does: raw texts, "[invalid]" among them.
TEST(VoteLine, LabelledMajorities) {
  IHA_REQUIRE_CASES(cases);
  Graders graders;
  const auto rows = testing::JsonRows(cases + "/lm_eval/scores_majority.jsonl.gz");
  ASSERT_EQ(rows.size(), 40u);
  for (const auto& row : rows) {
    const auto outputs = row["outputs"].get<std::vector<std::string>>();
    const std::pair<const char*, int64_t> columns[] = {{"score-first", 1}, {"maj@8", 8}, {"maj@64", 64}};
    for (const auto& [name, k] : columns) {
      for (const auto rule : {scoring::VoteRule::kFirstSeen, scoring::VoteRule::kLmEval}) {
        const auto vote = VoteLine(graders, "gsm8k_cot.self_consistency", rule, k, row["gold"], outputs);
        ASSERT_TRUE(vote.ok()) << vote.status();
        EXPECT_EQ(*vote->winner, row[name]["answer"]) << row["id"] << " " << name;
        EXPECT_EQ(vote->correct, scoring::Rational(row[name]["exact_match"].get<int64_t>()))
            << row["id"] << " " << name;
      }
    }
  }
}

TEST(VoteLine, WithoutItsLibrariesAGraderIsUnavailable) {
  Graders graders;
  for (const char* metric : {"math.minerva", "math.prm800k"}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(ScoreLine(graders, metric, "1", "1").status())) << metric;
    const auto vote = VoteLine(graders, metric, scoring::VoteRule::kNsTieMean, 1, "1", {"1"});
    EXPECT_TRUE(absl::IsFailedPrecondition(vote.status())) << metric;
  }
}

}  // namespace
}  // namespace iha::benchmarks
