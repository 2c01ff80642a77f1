#include "benchmarks/scoring/answer_metric.h"

#include <gtest/gtest.h>

#include <string>

namespace iha::scoring {
namespace {

// What `score equiv` says of an answer and itself, also where the rule cannot read the text again. (Votes group equal
// texts before they ask.)
TEST(AnswerMetrics, AnExtractedAnswerEqualsItself) {
  const std::string outputs[] = {
      "so \\boxed{]fra \x0f"
      "en",                              // an unclosed box whose inside, alone, states no answer
      "\\boxed{is ]fra}",                // the same, closed
      "#### " + std::string(1200, '7'),  // longer than a bare number is read
      "#### 1/3 then \\boxed{0.5}",
      "The answer is 1,2,3.",
      "\\boxed{the answer is 7, so 8}",
      "The final answer is 18",
      "\\boxed{\\frac{1}{}",
      "$\\left( 1, 2",
  };
  for (const AnswerMetric& metric : AnswerMetrics()) {
    int valid = 0;
    for (const std::string& output : outputs) {
      const auto verdict = metric.judge("7", output);
      ASSERT_TRUE(verdict.ok()) << metric.name << ": " << verdict.status();
      if (!verdict->extraction.valid) continue;
      valid++;
      const std::string& answer = verdict->extraction.text;
      EXPECT_TRUE(metric.equal(answer, answer).equal) << metric.name << ": " << answer;
    }
    EXPECT_GT(valid, 0) << metric.name;
  }
}

TEST(AnswerMetrics, NoTextEqualsNothingOfTheRobustRules) {
  for (const char* name : {"gsm8k.robust", "math.robust"}) EXPECT_FALSE(FindAnswerMetric(name)->equal("", "").equal);
}

}  // namespace
}  // namespace iha::scoring
