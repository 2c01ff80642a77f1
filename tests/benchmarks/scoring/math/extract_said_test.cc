// Answers in bold type, in lists of lines, and behind or in front of words that no step of its own reads.
#include <gtest/gtest.h>

#include "benchmarks/scoring/math/math_robust.h"

namespace iha::scoring {
namespace {

// What the last line puts in bold type is its answer; headings and stress are none, and "**" may be a power.
TEST(ExtractMath, WhatStandsInBoldIsTheAnswer) {
  const std::pair<const char*, const char*> rows[] = {
      {"Thus the total is 6 × 7 = **42**.", "42"},
      {"Therefore, the number left is 12 - 7 = **5 marbles**.", "5"},
      {"Therefore, he walked **200 meters** in 5 minutes.", "200"},
      {"So he bought **7 apples** for $14.", "7"},
      {"So he spent **$14** on 7 apples.", "14"},
      {"So the two values are **-3** and **12**.", "-3,12"},
      {"So the curve is a **parabola**.", "\\text{parabola}"},
      {"Since $f(-x) = f(x)$, the function is **even**.", "\\text{even}"},
      {"Therefore, **Alice** has a winning strategy.", "\\text{Alice}"},
      {"This statement is **false**.", "\\text{false}"},
      {"**No**, it is not possible.", "\\text{No}"},
      {"After turning, she faces **east**.", "east"},
      {"**Step 3** shows that there are 7 ways.", "7"},
      {"**Total:** 12", "12"},
      {"On **Day 3**, she sold 12 boxes.", "12"},
      {"So she sold 12 boxes.\n\n**Verified**", "12"},
      {"So she sold 12 boxes.\n\nLet me know if you need **more**.", "12"},
      {"For **5 people**, it costs $100.", "100"},
      {"So he has **3** + **4** = 7 apples.", "7"},
      {"There are 7 ways, **not** 8.", "7"},
      {"We get 7, the **minimum** value.", "7"},
      {"This is the **only** solution: x = 7.", "7"},
      {"So f(x) = x**2 + 1", "x^2+1"},
      {"The result is 2**3 = 8.", "8"},
  };
  for (const auto& [text, value] : rows) {
    EXPECT_TRUE(JudgeMath(value, text).equal()) << text << " gives " << GradedAnswer(value, text).text;
    EXPECT_FALSE(JudgeMath("1234", text).equal()) << text;
  }
}

TEST(ExtractMath, AnswersThatAreStatedInOtherWays) {
  const std::pair<const char*, const char*> rows[] = {
      {"Thus $12$ is the final answer, obtained after 3 steps.", "12"},
      {"What is the answer? It is 9.", "9"},
      {"The answer is 12!", "12"},
      {"The answer is $4!$.", "24"},
      {"The solutions are:\n- $x = -3$\n- $x = 12$", "-3,12"},
      {"The roots are $x_1 = -3$ and $x_2 = 12$.", "-3,12"},
      {"Thus, $x = 12$ (rejecting $x=-3$).", "12"},
      {"Thus, the minimum value is $5$, attained at $x=1$ and $y=2$.", "5"},
      {"So the line is $y=2x-1$, with slope $2$ and intercept $-1$.", "y=2x-1"},
      {"\\[\nn = 12.\n\\]\nThis is the smallest integer greater than 10 with the property.", "12"},
      {"$n=9$ fails. This is the smallest number: 10.", "10"},
      {"The population is 3 million.", "3000000"},
      {"The value is 1.6e5.", "160000"},
      {"Area $= \\pi r^2 = 12\\pi \\approx 37.7$ square units.", "12\\pi"},
      {"In 7 days.", "7"},
      {"A: 7", "7"},
      {"A: 7", "A"},
      {"Hence the winner is Alice.", "Alice"},
      {"Thus the function is neither even nor odd.", "neither"},
      {"The limit diverges to infinity.", "\\infty"},
      // Beside a day, or yes and no, what the text says of such.
      {"Counting forward 100 days from Wednesday, we land on Friday.", "Friday"},
      {"No. The sum can't be prime.", "\\text{No}"},
      {"Yes! For example, take $n = 3$.", "Yes"},
      {"Since $a_1 = 2$ and $d = 3$, $a_2 = 5$.", "5"},
      {"$x=\\pm4$, and since $x>0$, $x=4$.", "4"},
      {"The minimum is 16 when x = 2 and y = 4.", "16"},
      {"The answers are:\n- 1\n- 2", "1,2"},
      {"The solutions are\n1. $x=1$\n2. $x=2$", "1,2"},
      {"The answer is - 5", "-5"},
      {"So x = 4 or x = -4.", "\\pm4"},
      {"So x = 2 or x = 3.", "\\{2,3\\}"},
      {"Total: 12", "12"},
      {"He has 5 hundred-dollar bills.", "5"},
      {"It is 24 cm^3.", "24"},
  };
  for (const auto& [text, value] : rows) {
    EXPECT_TRUE(JudgeMath(value, text).equal()) << text << " gives " << GradedAnswer(value, text).text;
    EXPECT_FALSE(JudgeMath("1234", text).equal()) << text;
  }
  EXPECT_FALSE(JudgeMath("Wednesday", rows[20].first).equal());
  // Parts under their numbers, and an approximation in brackets.
  EXPECT_TRUE(JudgeMath("2, 3", "1) 2; 2) 3").equal());
  EXPECT_TRUE(JudgeMath("5, 7", "(a) 5; (b) 7").equal());
  EXPECT_FALSE(JudgeMath("5, 8", "(a) 5; (b) 7").equal());
  EXPECT_TRUE(JudgeMath("10\\sqrt3", "10\\sqrt{3}\\text{ (approximately } 17.32)").equal());
}

}  // namespace
}  // namespace iha::scoring
