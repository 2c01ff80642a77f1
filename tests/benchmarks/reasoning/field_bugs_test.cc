// What users of the peer tools reported about extraction, equivalence, stops and statistics (field-bugs by number), and
// what these graders say instead. Cases are of our own wording. 67 and 85 are about cells: tests/reports. 86 and 89 are
// about comparing two checkpoints: the gate's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "benchmarks/benchmark.h"
#include "benchmarks/graders/graders.h"
#include "tests/support/graders.h"

namespace iha::benchmarks {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Case {
  int bug;
  const char* metric;
  const char* gold;
  const char* output;
  bool correct;
};

void Expect(Graders& graders, const Case& c) {
  const auto verdict = graders.Judge(c.metric, c.gold, c.output);
  ASSERT_TRUE(verdict.ok()) << "field bug " << c.bug << ": " << verdict.status();
  EXPECT_EQ(verdict->correct, c.correct) << "field bug " << c.bug << ": " << c.output << ": " << verdict->reason;
}

// Where a compat metric stands beside ours, the bug is its own, and stays.
TEST(FieldBugs, Extraction) {
  const Case cases[] = {
      {1, "gsm8k.robust", "29", "That makes $29.00.", true},
      {1, "gsm8k.flexible_extract", "29", "That makes $29.00.", false},
      {3, "gsm8k.robust", "7", "Example: #### 3\n\nNow mine: 3 + 4.\n#### 7", true},
      {3, "gsm8k.strict_match", "7", "Example: #### 3\n\nNow mine: 3 + 4.\n#### 7", false},
      {4, "gsm8k.robust", "12", "He picks \\boxed{12} pears on 3 days.", true},
      {4, "gsm8k.robust", "12", "So the answer is 12 pears, for 3 days", true},
      {4, "gsm8k_cot.strict_match", "12", "He picks \\boxed{12} pears on 3 days.", false},
      {7, "gsm8k.robust", "8000", "in all \\boxed{8,000}", true},
      {7, "math.robust", "8000", "in all \\boxed{8,000}", true},
      {7, "gsm8k.robust", "12500", "in all \\boxed{12{,}500}", true},
      {7, "math.robust", "12500", "in all \\boxed{12{,}500}", true},
      {9, "gsm8k.robust", "100000", "They raise 100,000 in a year", true},
      {9, "gsm8k.robust", "2.5", "each gets 2.50 litres", true},
      {9, "gsm8k.robust", "2", "each gets 2.50 litres", false},
      {11, "math.robust", "42", "Hence \\[ \\boxed{42} \\] as claimed.", true},
      {11, "math.hendrycks", "42", "Hence \\[ \\boxed{42} \\] as claimed.", false},
  };
  Graders graders;
  for (const Case& c : cases) Expect(graders, c);
  // 4: which step found the answer is said. 5: strict and loose rules stand beside one another by default.
  EXPECT_THAT(graders.Judge("gsm8k.robust", "12", "the answer is 12")->reason, HasSubstr("answer is"));
  EXPECT_THAT(graders.Judge("gsm8k.robust", "12", "12")->reason, HasSubstr("last number"));
  const BenchmarkInfo gsm8k = *FindBenchmark("gsm8k");
  for (const char* metric : {"gsm8k.strict_match", "gsm8k.flexible_extract", "gsm8k.robust"}) {
    EXPECT_THAT(gsm8k.default_metrics, Contains(metric));
  }
}

TEST(FieldBugs, Equivalence) {
  const Case cases[] = {
      {12, "math.robust", "(-\\infty, 3]", "\\boxed{(-\\infty, 3]}", true},
      {12, "math.robust", "\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}",
       "\\boxed{\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}}", true},
      {14, "math.robust", "2", "\\boxed{\\sqrt[3]{8}}", true},
      {14, "math.robust", "8", "\\boxed{\\sqrt[3]{8}}", false},
      {15, "math.robust", "9a+11", "\\boxed{11+9a}", true},
      {15, "math.hendrycks", "9a+11", "$11+9a$", false},
      {17, "math.robust", "2x = 10, so \\boxed{5}", "Halving both sides, x is \\boxed{5}.", true},
      {18, "math.robust", "(0,12.5)", "\\boxed{0<x<12.5}", true},
      {18, "math.robust", "0<x<12.5", "\\boxed{(0,12.5)}", true},
      {20, "math.robust", "3x-y+13=0", "\\boxed{3x+4y+14=0}", false},
      {20, "math.robust", "3x-y+13=0", "\\boxed{y-3x-13=0}", true},
      {22, "math.robust", "4", "\\boxed{4\\sqrt(2)}", false},
      {22, "math.robust", "4\\sqrt{2}", "\\boxed{4}", false},
      {22, "math.robust", "4", "\\boxed{4\\sqrt{2}", false},
      {24, "math.robust", "1", "\\boxed{\\log(\\log(\\log(\\log(10^{10^{10^{10}}}))))}", false},
      {27, "math.robust", "x=1", "\\boxed{x^{10^{10}} = 2^{10^{10^{10}}}}", false},
  };
  Graders graders;
  for (const Case& c : cases) Expect(graders, c);
  // 17: a text of a megabyte is bounded work, whatever it says.
  EXPECT_FALSE(graders.Judge("math.robust", "5", std::string(1 << 20, '('))->correct);
}

TEST(FieldBugs, EquivalenceOfTheSymPyGraders) {
  IHA_REQUIRE_GRADERS(libraries);
  const Case cases[] = {
      {12, "math.minerva", "(-\\infty, 3]", "Final Answer: The final answer is $(-\\infty, 3]$. I hope it is correct.",
       true},
      {14, "math.minerva", "2", "Final Answer: The final answer is $\\sqrt[3]{8}$. I hope it is correct.", true},
      {17, "math.prm800k", "2x = 10, so \\boxed{5}", "Halving both sides, x is \\boxed{5}.", true},
  };
  Graders graders({.libraries = libraries});
  for (const Case& c : cases) Expect(graders, c);
}

// 24, 25, 27: a grader that dies or hangs is asked again alone, then counted apart: never a wrong answer, and the next
// one is graded as ever.
TEST(FieldBugs, AGraderThatEndsIsNoWrongAnswer) {
  Graders graders({.guard = "/bin/false"});
  const auto grades = graders.GradeSamples("math.robust", "5", {"\\boxed{5}"});
  EXPECT_EQ(grades[0].unscored, Unscored::kGraderError);
  EXPECT_EQ(graders.GradeSamples("gsm8k.robust", "5", {"5"})[0].score, (Score{1, 1}));
}

// 64: thinking is stripped before the stops cut.
TEST(FieldBugs, AStopInsideTheThinkingEndsNothing) {
  const auto chat = *OpenBenchmark(*ParseBenchmarkRef("gsm8k_demo?prompt=chat"), "");
  EXPECT_THAT(chat->Render(0).stops, IsEmpty());
  const auto metrics = BaseMetrics(chat->info(), {"gsm8k.strict_match"});
  const std::string text = "<think>Question: what is 9?\n#### 9</think>\n#### " +
                           chat->Gold(0).substr(chat->Gold(0).rfind("#### ") + 5) + "\n\nQuestion: and 8?\n#### 8";
  EXPECT_EQ(chat->Grade(0, {text}, metrics)[0][0].score, (Score{1, 1}));
}

SampleGrade Graded(bool correct) {
  SampleGrade grade;
  grade.metric = "m";
  grade.valid = true;
  grade.score = {correct ? 1 : 0, 1};
  return grade;
}

// 47: pass@k beyond the samples is undefined. 88: every repeat counts, not the first alone.
TEST(FieldBugs, ItemValues) {
  const auto values = *benchmarks::ItemValues({"m", "pass@3?metric=m"}, {{Graded(false)}, {Graded(true)}});
  EXPECT_EQ(values[0].score, (Score{1, 2}));
  EXPECT_EQ(values[1].unscored, Unscored::kUndefined);
}

}  // namespace
}  // namespace iha::benchmarks
