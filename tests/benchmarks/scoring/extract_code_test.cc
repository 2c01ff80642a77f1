#include "benchmarks/scoring/extract_code.h"

#include <gtest/gtest.h>

#include "tests/support/gz_lines.h"
#include "tests/support/roots.h"

namespace iha::scoring {
namespace {

TEST(ExtractCode, RulesOfLmEval) {
  IHA_REQUIRE_CASES(cases);
  const auto rows = testing::JsonRows(cases + "/lm_eval/scores_code_extract.jsonl.gz");
  EXPECT_EQ(rows.size(), size_t{86});
  for (const auto& row : rows) {
    const std::string output = row["output"];
    EXPECT_EQ(ExtractCode(CodeExtraction::kMbppInstruct, output), row["mbpp_instruct"]) << output;
    EXPECT_EQ("P\n" + ExtractCode(CodeExtraction::kWhole, output), row["humaneval"]) << output;
    EXPECT_EQ("P\n" + ExtractCode(CodeExtraction::kFirstFence, output), row["humaneval_instruct"]) << output;
  }
}

// Where that rule eats the first word or gives nothing (field bug 29), this one gives the program.
TEST(ExtractCode, TheBlockThatThePromptOrTheModelOpened) {
  const std::string code = "def f(x):\n    return x\n";
  for (const std::string& text : {code, code + "```", code + "```\nThis works:\n```\nf(1)\n```",
                                  "```python\n" + code + "```", "```python\n" + code, "\n```\n" + code + "```\nDone.",
                                  "Here it is:\n```python\n" + code + "```", "  ```py\n" + code + "  ```\n"}) {
    EXPECT_EQ(CodeInFence(text), code) << text;
  }
  EXPECT_EQ(CodeInFence("    return 1"), "    return 1");
  EXPECT_EQ(CodeInFence(""), "");
  EXPECT_EQ(CodeInFence("```"), "");
  EXPECT_EQ(CodeInFence("x = '```'\n```"), "x = '```'\n");
}

}  // namespace
}  // namespace iha::scoring
