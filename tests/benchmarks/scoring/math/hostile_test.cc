// Bounded work on hostile input: no verdict takes longer than its counters allow, none crashes.
#include <gtest/gtest.h>

#include <ctime>
#include <functional>

#include "benchmarks/scoring/math/math_robust.h"
#include "benchmarks/scoring/math/node.h"

namespace iha::scoring {
namespace {

std::string Repeat(const std::string& piece, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += piece;
  return out;
}

double Seconds(const std::function<void()>& work) {
  const std::clock_t begin = std::clock();
  work();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

// The bound is the crash guard's (2 s of CPU); what is asserted of the verdict does not depend on it.
constexpr double kGuardSeconds = 2.0;

TEST(MathHostile, WorkIsBounded) {
  const std::string deep = Repeat("{", 10000) + "1" + Repeat("}", 10000);
  const std::string inputs[] = {
      "10^{9^9}",
      "10^9^9",
      "9^{9^{9^{9^9}}}",
      "(10^{9^9})!",
      "\\sin(10^{10^{10}})",
      "3\\cdot10^{5^{5^{5^{5}}}}+\\sin(3)+\\cos(5^{77})+\\tan(2x)",
      "(x+y+z+w+1)^{300}",
      "(1+x)^{100000}(1+y)^{100000}",
      deep,
      Repeat("\\sqrt{", 3000) + "2" + Repeat("}", 3000),
      Repeat("\\ln(", 100) + "5" + Repeat(")", 100),
      Repeat("-", 7000) + "1",
      Repeat("x^", 3000) + "x",
      "5" + Repeat("!", 6000),
      "5" + Repeat("%", 6000),
      Repeat("f \\circ ", 2000) + "g",
      Repeat("|", 4000),
      Repeat("(", 4000),
      Repeat("\\pm 1 ", 500),
      Repeat("1,", 3000) + "2",
      "\\sum_{k=1}^{300}\\sum_{j=1}^{300}\\sum_{i=1}^{300} ijk",
      "\\boxed{" + Repeat("\\boxed{", 20000),
      Repeat("\\boxed{", 100000),
      Repeat("9", 8000),
      Repeat("a", 1 << 20),
      Repeat("$", 1 << 20),
      Repeat("answer is ", 100000),
      Repeat("7 ", 1 << 19),
      "\\begin{pmatrix}" + Repeat("1&", 3000) + "1\\end{pmatrix}",
      std::string(1 << 20, '\0'),
      Repeat("\xff\xfe", 5000),
      "\\gcd(10^{400},10^{399}+1)",
      "\\binom{10^9}{5\\cdot10^8}",
      Repeat("(a+", 100) + "b" + Repeat(")^2", 100),
      "\\sum_{k=1}^{300}\\sum_{j=1}^{300}\\frac{1}{k^{90}+j^{90}}",
      "(" + Repeat("\\sum_{k=1}^{300}\\frac{1}{k^{99}},", 90) + "1)",
      Repeat("14000!,", 200) + "1",
      "(3000.5)!+(2999.5)!-e^{5000}",
      "\\sin(e^{5000})+\\cos(e^{5000.5})+\\ln(3000.5!)",
      Repeat("The final answer is correct. ", 5000),
      Repeat("\\boxed{}", 50000),
      Repeat("{}", 20000) + "5" + Repeat("{}", 20000),
      Repeat("**1** ", 50000),
      Repeat("**", 20000),
      Repeat("- 1\n", 20000),
      Repeat(" when x = 2", 10000),
  };
  for (const std::string& input : inputs) {
    const std::string shown = input.substr(0, 40);
    for (const std::string& other : {std::string("5"), input, input + "+1", "\\boxed{" + input + "x}"}) {
      MathVerdict there;
      EXPECT_LT(Seconds([&] { there = JudgeMath(input, other); }), kGuardSeconds) << shown;
      EXPECT_EQ(there.outcome, JudgeMath(other, input).outcome) << shown;
    }
  }
}

TEST(MathHostile, BudgetsDecideNotClocks) {
  const MathBudget tiny{.nodes = 20};
  EXPECT_EQ(JudgeMath("(x+1)(x+2)(x+3)", "x^3+6x^2+11x+6", tiny).outcome, MathOutcome::kUndecided);
  const MathBudget no_balls{.ball_work = 100};
  EXPECT_EQ(JudgeMath("\\ln 12", "\\ln 3+2\\ln 2", no_balls).outcome, MathOutcome::kUndecided);
  EXPECT_EQ(JudgeMath("\\ln 12", "\\ln 3+2\\ln 2").outcome, MathOutcome::kEqual);
  EXPECT_EQ(JudgeMath("\\sqrt{12}", "2\\sqrt{3}", no_balls).outcome, MathOutcome::kEqual) << "needs no balls";
  const MathBudget shallow{.depth = 10};
  EXPECT_EQ(JudgeMath("((((5))))", "5", shallow).outcome, MathOutcome::kUndecided);
  const MathBudget short_answers{.answer_bytes = 10};
  EXPECT_EQ(JudgeMath("1+1+1+1+1+1+1", "7", short_answers).outcome, MathOutcome::kUndecided);
}

TEST(MathHostile, HugeNumbersAreToldApart) {
  EXPECT_EQ(JudgeMath("2^{200}", "2^{200}+1").outcome, MathOutcome::kDifferent);
  EXPECT_EQ(JudgeMath("10^{400}", "10^{400}+1").outcome, MathOutcome::kDifferent);
  EXPECT_EQ(JudgeMath("e^{-1000}", "0").outcome, MathOutcome::kDifferent);
}

// Comparisons hold a view of a symbol's name while they build the tree that it is replaced in.
TEST(MathHostile, NodesStayWhereTheyAre) {
  math::Tree tree{MathBudget{}};
  const math::Ref x = tree.New(math::Kind::kSymbol, "x", {});
  const math::Node* const before = &tree[x];
  const std::string_view name = tree[x].text;
  for (int i = 0; i < 1000; ++i) ASSERT_NE(tree.New(math::Kind::kSymbol, "y", {x}), math::kNoRef);
  EXPECT_EQ(&tree[x], before);
  EXPECT_EQ(name, "x");
}

}  // namespace
}  // namespace iha::scoring
