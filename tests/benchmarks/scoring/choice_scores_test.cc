// Scores of choices: text that loses no bit, and lm-evaluation-harness' acc and acc_norm.
#include "benchmarks/scoring/choice_scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "common/rng.h"

namespace iha::scoring {
namespace {

using ::testing::HasSubstr;

TEST(ChoiceScores, EveryDoubleComesBackBitForBit) {
  PhiloxStream random(7);
  std::vector<ChoiceScore> scores = {{-0.0, 1, true},
                                     {-std::numeric_limits<double>::infinity(), 2, false},
                                     {std::numeric_limits<double>::denorm_min(), 3, false},
                                     {-std::numeric_limits<double>::max(), 2147483647, true},
                                     {-0.1, 1, false},
                                     {-12, 1, false}};
  for (int i = 0; i < 2000; i++) {
    const auto value = std::bit_cast<double>(random.NextBits());
    if (value == value) scores.push_back({value, 1 + i, i % 2 == 0});
  }
  const auto parsed = ParseChoiceScores(FormatChoiceScores(scores), scores.size());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_EQ(parsed->size(), scores.size());
  for (size_t i = 0; i < scores.size(); i++) {
    EXPECT_EQ(std::bit_cast<uint64_t>((*parsed)[i].loglikelihood), std::bit_cast<uint64_t>(scores[i].loglikelihood));
    EXPECT_EQ((*parsed)[i], scores[i]);
  }
}

TEST(ChoiceScores, AnyOtherTextIsRefused) {
  const std::string good = "-1.5 2 0\n-3 1 1\n";
  ASSERT_TRUE(ParseChoiceScores(good, 2).ok());
  for (const std::string bad :
       {"", "-1.5 2 0\n", "-1.5 2 0\n-3 1 1", "-1.5 2 0\n-3 1 1\nx", "-1.5 2 0\n\n-3 1 1\n", "-1.5 2 0\n-3 1 2\n",
        "-1.5 2 0\n-3 0 1\n", "-1.5 2 0\n-3 1\n", "-1.5 2 0\nnan 1 1\n", "-1.5 2 0\n-3x 1 1\n", "-1.5 2 0\n -3 1 1\n",
        "-1.5 2 0\n-3 1 1 \n", "-1.5 2 0\n1e999 1 1\n", "-1.5 2 0\n-3 1.0 1\n"}) {
    EXPECT_EQ(ParseChoiceScores(bad, 2).status().code(), absl::StatusCode::kDataLoss) << bad;
  }
  EXPECT_EQ(ParseChoiceScores(good, 3).status().message(),
            "scores of choices: found 2 lines, expected one for each of 3 choices");
  EXPECT_THAT(std::string(ParseChoiceScores("-1 2 0\n\x1b[2J\n", 2).status().message()),
              HasSubstr("line 2: found \"\\x1B[2J\""));
}

std::vector<ChoiceScore> Of(const std::vector<double>& likelihoods) {
  std::vector<ChoiceScore> scores;
  for (const double value : likelihoods) scores.push_back({value, 1, false});
  return scores;
}

// numpy.argmax: the first of equal values.
TEST(ChoiceScores, TheFirstOfTheLikeliest) {
  EXPECT_EQ(LikeliestChoice(Of({-3, -1, -2})), 1u);
  EXPECT_EQ(LikeliestChoice(Of({-3, -1, -1})), 1u);
  EXPECT_EQ(LikeliestChoice(Of({-2, -2, -2})), 0u);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(LikeliestChoice(Of({-kInfinity, -kInfinity})), 0u);
  EXPECT_EQ(LikeliestChoice(Of({-kInfinity, -1e300})), 1u);
}

// Python's len() counts characters: é is one, however many bytes or tokens it has.
TEST(ChoiceScores, ByCharactersNotBytesOrTokens) {
  EXPECT_EQ(CharacterCount("a\u00e9\u4e2d\U0001F600"), 4);
  EXPECT_EQ(LikeliestByLength(Of({-4, -6}), {"aa", "bbbb"}), 1u) << "-2 < -1.5";
  EXPECT_EQ(LikeliestByLength(Of({-4, -8}), {"aa", "bbbb"}), 0u) << "equal: the first";
  EXPECT_EQ(LikeliestByLength(Of({-4, -6}), {"ab", "\u00e9\u00e9"}), 0u) << "-2 > -3; by bytes it were -2 < -1.5";
}

}  // namespace
}  // namespace iha::scoring
