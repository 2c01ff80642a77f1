// The rules of NVIDIA's evaluate.py, case by case; tests/cli/score_ruler_test.cc compares whole files with Python.
#include "benchmarks/ruler/score.h"

#include <gtest/gtest.h>

namespace iha::benchmarks::ruler {
namespace {

using Texts = std::vector<std::string>;

Score Of(Match match, const Texts& references, const std::string& prediction) {
  return ScoreOf(match, FoundIn(references, prediction));
}

TEST(RulerScore, AllIsTheShareOfReferencesAndPartIsAnyOfThem) {
  const Texts four = {"12", "34", "56", "78"};
  EXPECT_EQ(Of(Match::kAll, four, "34, 78"), (Score{1, 2}));
  EXPECT_EQ(Of(Match::kAll, four, "12 34 56 78"), (Score{1, 1}));
  EXPECT_EQ(Of(Match::kAll, {"a", "b", "c"}, "c"), (Score{1, 3}));
  EXPECT_EQ(Of(Match::kAll, four, ""), (Score{0, 1}));
  EXPECT_EQ(Of(Match::kPart, four, "34, 78"), (Score{1, 1}));
  EXPECT_EQ(Of(Match::kPart, four, "9"), (Score{0, 1}));
}

TEST(RulerScore, ReferencesAreSoughtAsPartsOfTheTextInLowerCase) {
  EXPECT_EQ(Of(Match::kAll, {"Paris"}, "it's PARISIAN"), (Score{1, 1}));
  EXPECT_EQ(Of(Match::kAll, {"3,677 seated"}, "can seat 3,677"), (Score{0, 1}));
  EXPECT_EQ(Of(Match::kAll, {"ÉTÉ"}, "l'été"), (Score{1, 1}));
  EXPECT_EQ(Of(Match::kAll, {""}, "anything"), (Score{1, 1}));
  // A reference that is there twice counts twice.
  EXPECT_EQ(Of(Match::kAll, {"a", "a", "b"}, "a"), (Score{2, 3}));
}

// Controls become newlines before the match, so that a reference with one in it is never found; they are white space
// at the ends, but for those that Python does not strip.
TEST(RulerScore, ControlsBecomeNewlines) {
  EXPECT_EQ(CleanPrediction(" \t a\tb\x01"
                            "c\x7f \n"),
            "a\nb\nc\x7f");
  EXPECT_EQ(CleanPrediction("\x01\x02 x \x03"), "x");
  EXPECT_EQ(CleanPrediction(std::string("a\0b", 3)), "a\nb");
  EXPECT_EQ(CleanPrediction("\u00a0\u2003x\u3000"), "x");
  EXPECT_EQ(CleanPrediction("\u200bx"), "\u200bx");
  EXPECT_EQ(CleanPrediction("\x1f\v\f"), "");
  EXPECT_EQ(Of(Match::kAll, {"a\tb"}, "a\tb"), (Score{0, 1}));
  EXPECT_EQ(Of(Match::kAll, {"a\nb"}, "a\tb"), (Score{1, 1}));
}

TEST(RulerScore, PercentsAreAddedUpAndRoundedAsPythonDoes) {
  EXPECT_EQ(OfficialPercent(std::vector<Score>{{1, 1}}), "100.00");
  EXPECT_EQ(OfficialPercent(std::vector<Score>{{1, 3}, {1, 1}, {0, 1}}), "44.44");
  // 1/32 is 3.125 %, a tie that goes to the even digit; away from zero it would be 3.13.
  std::vector<Score> one_of_32(32, Score{0, 1});
  one_of_32[7] = {1, 1};
  EXPECT_EQ(OfficialPercent(one_of_32), "3.12");
}

TEST(RulerScore, NamesOfTheRules) {
  EXPECT_STREQ(NameOf(Match::kAll), "string_match_all");
  EXPECT_STREQ(NameOf(Match::kPart), "string_match_part");
  for (const Task& task : Tasks()) EXPECT_EQ(task.match == Match::kPart, task.name.starts_with("qa_")) << task.name;
}

}  // namespace
}  // namespace iha::benchmarks::ruler
