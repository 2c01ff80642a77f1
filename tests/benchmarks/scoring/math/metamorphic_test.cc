// What must never change a verdict, and what always must.
#include <gtest/gtest.h>

#include <functional>

#include "benchmarks/scoring/math/math_robust.h"
#include "tests/benchmarks/scoring/math/pairs.h"
#include "tests/support/gz_lines.h"
#include "tests/support/roots.h"

namespace iha::scoring {
namespace {

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string Sized(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool plain = i == 0 || text[i - 1] != '\\';
    // One-sided brackets (intervals) keep their pairs: \left takes any two marks.
    if (plain && (text[i] == '(')) out += "\\left";
    if (plain && (text[i] == ')')) out += "\\right";
    out += text[i];
  }
  return out;
}

TEST(MathMetamorphic, EveryAnswerEqualsItself) {
  for (const Pair& pair : ReadPairs()) {
    for (const std::string& side : {pair.left, pair.right}) EXPECT_TRUE(JudgeMath(side, side).equal()) << side;
  }
}

using Dress = std::function<std::string(const std::string&)>;

std::vector<Dress> Dresses() {
  return {[](const std::string& s) { return "$" + s + "$"; }, [](const std::string& s) { return "  " + s + " "; },
          [](const std::string& s) { return "\\boxed{" + s + "}"; },
          [](const std::string& s) { return Replaced(Replaced(s, "\\dfrac", "\\frac"), "\\frac", "\\dfrac"); }, Sized};
}

TEST(MathMetamorphic, DressNeverChangesAVerdict) {
  const std::vector<Dress> dresses = Dresses();
  for (const Pair& pair : ReadPairs()) {
    // Plain text words (a sentence, an escape) are not mathematics that could be dressed.
    if (pair.left.find("box") != std::string::npos) continue;
    const MathOutcome plain = JudgeMath(pair.left, pair.right).outcome;
    for (const auto& dress : dresses) {
      EXPECT_EQ(JudgeMath(dress(pair.left), pair.right).outcome, plain)
          << pair.line << ": " << dress(pair.left) << " || " << pair.right;
      EXPECT_EQ(JudgeMath(pair.left, dress(pair.right)).outcome, plain)
          << pair.line << ": " << pair.left << " || " << dress(pair.right);
    }
  }
}

TEST(MathMetamorphic, ATermOfAThousandthAlwaysChangesTheVerdict) {
  for (const char* text :
       {"5", "-3", "\\frac{1}{3}", "0.5", "\\sqrt{2}", "\\pi", "2\\pi r", "x^2+1", "1.41421", "50\\%", "3+4i", "e^{x}",
        "\\sin x", "\\log_2 5", "10!", "0.3333", "1000000", "2^{100}", "\\frac{a}{b}"}) {
    for (const char* term : {" + 0.001", " - 0.001", " + \\frac{1}{1000}", " + 10^{-3}"}) {
      const MathVerdict verdict = JudgeMath(text, std::string(text) + term);
      EXPECT_EQ(verdict.outcome, MathOutcome::kDifferent) << text << term << " by " << verdict.rule;
    }
  }
  EXPECT_FALSE(JudgeMath("(1,2)", "(1,2.001)").equal());
  EXPECT_FALSE(JudgeMath("[0,\\sqrt2]", "[0,\\sqrt2+0.001]").equal());
  EXPECT_FALSE(JudgeMath("x=3", "x=3.001").equal());
  EXPECT_FALSE(JudgeMath("1,2,3", "1,2,3.001").equal());
}

// Every reference answer of MATH-500: itself, dressed, beside its neighbours in both orders, and a thousandth away.
TEST(MathMetamorphic, HoldsForEveryReferenceAnswerOfMath500) {
  IHA_REQUIRE_DATA(data);
  std::vector<std::string> answers;
  for (const auto& row : testing::JsonRows(data + "/math500/test.jsonl")) answers.push_back(row["answer"]);
  ASSERT_EQ(answers.size(), 500u);
  const std::vector<Dress> dresses = Dresses();
  for (size_t i = 0; i < answers.size(); ++i) {
    const std::string& answer = answers[i];
    EXPECT_TRUE(JudgeMath(answer, answer).equal()) << answer;
    for (const Dress& dress : dresses) {
      EXPECT_TRUE(JudgeMath(answer, dress(answer)).equal()) << answer << " || " << dress(answer);
      EXPECT_TRUE(JudgeMath(dress(answer), answer).equal()) << answer << " || " << dress(answer);
    }
    for (const size_t step : {1, 7, 50}) {
      const std::string& other = answers[(i + step) % answers.size()];
      const MathVerdict there = JudgeMath(answer, other);
      const MathVerdict back = JudgeMath(other, answer);
      EXPECT_EQ(there.outcome, back.outcome) << answer << " || " << other;
      EXPECT_EQ(there.rule, back.rule) << answer << " || " << other;
      for (const Dress& dress : dresses) {
        EXPECT_EQ(JudgeMath(dress(answer), other).outcome, there.outcome) << dress(answer) << " || " << other;
      }
    }
    if (answer.starts_with("\\text{(")) continue;  // a choice is its letter, whatever stands behind it
    for (const char* term : {"+0.001", " - 0.001", "+10^{-3}", " + \\frac{1}{1000}"}) {
      EXPECT_FALSE(JudgeMath(answer, answer + term).equal()) << answer << term;
    }
  }
}

}  // namespace
}  // namespace iha::scoring
