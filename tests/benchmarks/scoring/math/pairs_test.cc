// Labelled pairs, one a line: each must get its label in both orders, by the same rule.
#include "tests/benchmarks/scoring/math/pairs.h"

#include <gtest/gtest.h>

#include "benchmarks/scoring/math/math_robust.h"

namespace iha::scoring {
namespace {

TEST(MathPairs, EveryPairHasItsLabelInBothOrders) {
  const std::vector<Pair> pairs = ReadPairs();
  ASSERT_GT(pairs.size(), 250u);
  for (const Pair& pair : pairs) {
    const MathVerdict there = JudgeMath(pair.left, pair.right);
    const MathVerdict back = JudgeMath(pair.right, pair.left);
    EXPECT_EQ(there.equal(), pair.equal) << "line " << pair.line << ": " << pair.left << " || " << pair.right << " is "
                                         << NameOf(there.outcome) << " by " << there.rule;
    EXPECT_EQ(there.outcome, back.outcome) << "line " << pair.line;
    EXPECT_EQ(there.rule, back.rule) << "line " << pair.line;
  }
}

TEST(MathPairs, TheRuleThatDecidedIsNamed) {
  EXPECT_EQ(JudgeMath("\\frac13", "0.3333").rule, "decimal");
  EXPECT_EQ(JudgeMath("28\\%", "0.28").rule, "percent");
  EXPECT_EQ(JudgeMath("180^\\circ", "\\pi").rule, "degrees");
  EXPECT_EQ(JudgeMath("x=5", "5").rule, "name = value: same form");
  EXPECT_EQ(JudgeMath("(x+1)^2", "x^2+2x+1").rule, "exact");
  EXPECT_EQ(JudgeMath("\\sqrt{12}", "2\\sqrt{3}").rule, "radicals");
  EXPECT_EQ(JudgeMath("2^{1/2}\\cdot 2^{1/3}", "2^{5/6}+10^{-70}").rule, "radicals");
  EXPECT_EQ(JudgeMath("\\ln 4", "2\\ln 2").rule, "balls");
  EXPECT_EQ(JudgeMath("three dozen", "She needs three dozen eggs.").rule, "words: same form");
  EXPECT_EQ(JudgeMath("\\log 100", "2").rule, "log base");
  EXPECT_EQ(JudgeMath("[2,5)", "2 \\le x < 5").rule, "region");
  EXPECT_EQ(JudgeMath("1000.99", "1000,99").rule, "commas: same form");
  EXPECT_EQ(JudgeMath("(B)", "The answer is B.").rule, "choice");
}

TEST(MathPairs, WhatCanNotBeReadOrDecidedIsUndecidedNotWrong) {
  EXPECT_EQ(JudgeMath("\\frac{1}{2", "3").outcome, MathOutcome::kUndecided);
  EXPECT_EQ(JudgeMath("4", "4 \\sqrt{").outcome, MathOutcome::kUndecided);
  const std::pair<const char*, const char*> unevaluated[] = {
      {"\\int_0^\\infty e^{-x} dx", "an improper integral"},
      {"\\int x^2 dx", "an indefinite integral"},
      {"\\sum_{n=1}^\\infty \\frac{1}{n^2}", "an infinite sum"},
      {"\\prod_{n=2}^\\infty (1-\\frac{1}{n^2})", "an infinite product"},
      {"\\lim_{x \\to 0} \\frac{\\sin x}{x}", "a limit"},
      {"1 + 2 + \\cdots + 7", "an ellipsis"}};
  for (const auto& [text, what] : unevaluated) {
    const MathVerdict verdict = JudgeMath(text, "28");
    EXPECT_EQ(verdict.outcome, MathOutcome::kUndecided) << text;
    EXPECT_EQ(verdict.rule, std::string(what) + " is not evaluated") << text;
  }
  EXPECT_EQ(JudgeMath("(1,2", "1.2").outcome, MathOutcome::kUndecided);
  EXPECT_EQ(JudgeMath("(1,2", "(1, 2").outcome, MathOutcome::kEqual);
  EXPECT_EQ(JudgeMath("", "5").outcome, MathOutcome::kDifferent);
}

}  // namespace
}  // namespace iha::scoring
