// The pure functions behind `iha-eval score` and `iha-eval vote`.
#include "benchmarks/scoring/lines.h"

#include <gtest/gtest.h>

namespace iha::scoring {
namespace {

TEST(ScoreLine, CompatLogsWhatItsToolLogsAndRobustGivesTheCanonicalNumber) {
  const auto strict = ScoreLine("gsm8k.strict_match", "x\n#### 1000", "so\n#### 1,000");
  ASSERT_TRUE(strict.ok()) << strict.status();
  EXPECT_EQ(strict->extracted, "1,000");
  EXPECT_TRUE(strict->correct);
  const auto invalid = ScoreLine("gsm8k.strict_match", "#### 5", "no idea");
  EXPECT_EQ(invalid->extracted, "[invalid]");
  EXPECT_FALSE(invalid->correct);
  const auto robust = ScoreLine("gsm8k.robust", "#### 29", "costs $29.00.");
  EXPECT_EQ(robust->extracted, "29");
  EXPECT_TRUE(robust->correct);
  EXPECT_NE(robust->reason.find("last number"), std::string::npos);
  EXPECT_FALSE(ScoreLine("gsm8k.robust", "#### 29", "none")->extracted.has_value());
}

TEST(ScoreLine, UnknownMetricListsTheKnownOnes) {
  const auto result = ScoreLine("gsm8k.stric", "1", "1");
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(result.status().message().find("gsm8k.strict_match"), std::string::npos);
}

TEST(VoteLine, GroupsByNormalisedAnswer) {
  const std::vector<std::string> outputs = {"#### 1,000", "#### 7", "#### 1000", "none"};
  const auto vote = VoteLine("gsm8k.strict_match", VoteRule::kNsTieMean, 4, "#### 1000", outputs);
  ASSERT_TRUE(vote.ok()) << vote.status();
  EXPECT_EQ(vote->winner, "1,000");
  EXPECT_EQ(vote->correct, Rational(1));
  EXPECT_EQ(vote->tie, Rational(0));
  EXPECT_EQ(vote->invalid, 1);
  EXPECT_FALSE(VoteLine("gsm8k.robust", VoteRule::kNsTieMean, 5, "1", outputs).ok());
}

}  // namespace
}  // namespace iha::scoring
