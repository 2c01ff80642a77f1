// The rules of NVIDIA's evaluate.py, case by case; tests/cli/score_ruler_test.cc compares whole files with Python.
#include "benchmarks/ruler/score.h"

#include <gtest/gtest.h>

#include <functional>

#include "benchmarks/ruler/grade.h"

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

TEST(RulerGrade, IsRightOrNotByWhatItSays) {
  const Task& vt = *FindTask("vt");
  const std::string text = "A, b; c [\"]";
  const SampleGrade right = GradeOf(vt, {"A", "D", "B", "[\"]", "E"}, text);
  EXPECT_EQ(right.reason,
            R"(string_match_all: 3 of 5 references in the text; found, not found: [["A","B","[\"]"],["D","E"]])");
  EXPECT_EQ(right.score, (Score{3, 5}));
  EXPECT_TRUE(IsGradeOf(vt, text, right));
  EXPECT_FALSE(IsGradeOf(vt, "A", right));
  EXPECT_FALSE(IsGradeOf(*FindTask("qa_1"), text, right)) << "another rule";
  EXPECT_FALSE(IsGradeOf(*FindTask("fwe"), text, right)) << "too many references";
  using G = SampleGrade;
  const std::vector<std::function<void(G&)>> spoils = {[](G& g) {
                                                         g.score = {1, 1};
                                                       },
                                                       [](G& g) { g.valid = false; },
                                                       [](G& g) { g.extracted = "A"; },
                                                       [](G& g) { g.unscored = Unscored::kGraderUnavailable; },
                                                       [](G& g) { g.reason = ""; },
                                                       [](G& g) { g.reason = "[[]]"; },
                                                       [](G& g) { g.reason = "[{\"a\":1},2]"; },
                                                       [](G& g) { g.reason += "]"; },
                                                       [](G& g) { g.reason = std::string(100000, '['); },
                                                       [](G& g) { g = GradeOf(*FindTask("vt"), {"A"}, "A"); }};
  for (size_t i = 0; i < spoils.size(); ++i) {
    SampleGrade spoilt = right;
    spoils[i](spoilt);
    EXPECT_FALSE(IsGradeOf(vt, text, spoilt)) << i;
  }
  const Task& qa = *FindTask("qa_1");
  EXPECT_TRUE(IsGradeOf(qa, "x", GradeOf(qa, {"a, b", "x", "x"}, "x")));
  EXPECT_TRUE(IsGradeOf(qa, "", GradeOf(qa, {"a"}, "")));
  EXPECT_TRUE(IsGradeOf(qa, "x y", GradeOf(qa, {"x", "y", "a", "b"}, "x y"))) << "two pairs";
}

}  // namespace
}  // namespace iha::benchmarks::ruler
