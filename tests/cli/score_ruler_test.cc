// `iha-eval score ruler`: the scores and sums of NVIDIA's evaluate.py, and what it says of bad lines.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/programs.h"

namespace iha {
namespace {

using ::testing::HasSubstr;
using testing::RunProgram;

TEST(ScoreRuler, EqualsThePythonRule) {
  for (const char* seed : {"1", "2", "3"}) {
    ChildOptions options;
    options.argv = {"/usr/bin/python3", IHA_RULER_PEER, fmt::format("{}/iha-eval", IHA_PROGRAM_FOLDER), seed};
    const auto result = RunChild(options, "", RunLimits{});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->exit.code, 0) << result->out << result->err;
    EXPECT_THAT(result->out, HasSubstr("rows agree"));
  }
}

TEST(ScoreRuler, ScoresAreUnroundedAndOtherKeysCarried) {
  const RunResult run = RunProgram({"iha-eval", "score", "ruler"},
                                   R"({"task":"cwe","outputs":["a","b","c"],"prediction":"1. A","id":007.50})"
                                   "\n"
                                   R"({"id":1.50,"prediction":"Rome","outputs":["rome","x"],"task":"qa_2"})"
                                   "\n");
  EXPECT_EQ(run.exit.code, 3) << "a number with leading zeros is no JSON";
  EXPECT_EQ(run.out, "{\"id\":1.50,\"score\":1.0}\n");
  const RunResult third =
      RunProgram({"iha-eval", "score", "ruler"}, R"({"task":"cwe","outputs":["a","b","c"],"prediction":"1. A"})"
                                                 "\n");
  EXPECT_EQ(third.exit.code, 0) << third.err;
  EXPECT_EQ(third.out, "{\"score\":0.3333333333333333}\n");
  EXPECT_EQ(third.err, "cwe: string_match_all 33.33 (1 rows, 0 empty)\n");
}

TEST(ScoreRuler, BadLinesAreNumberedAndTheRestIsScored) {
  const RunResult run = RunProgram({"iha-eval", "score", "ruler"},
                                   "{\"task\":\"niah_singel_1\",\"outputs\":[\"1\"],\"prediction\":\"1\"}\n"
                                   "{\"task\":\"vt\",\"outputs\":[],\"prediction\":\"1\"}\n"
                                   "{\"task\":\"vt\",\"outputs\":[1],\"prediction\":\"1\"}\n"
                                   "{\"task\":\"vt\",\"outputs\":[\"1\"]}\n"
                                   "\n"
                                   "{\"task\":\"vt\",\"outputs\":[\"1\"],\"prediction\":\"1\"}\n"
                                   "nonsense\n");
  EXPECT_EQ(run.exit.code, 3);
  EXPECT_EQ(run.out, "{\"score\":1.0}\n");
  EXPECT_THAT(run.err, HasSubstr("iha-eval score ruler: line 1: field \"task\": "));
  EXPECT_THAT(run.err, HasSubstr("niah_single_1"));
  EXPECT_THAT(run.err, HasSubstr("line 2: field \"outputs\": is empty; expected one reference or more"));
  EXPECT_THAT(run.err, HasSubstr("line 3: field \"outputs\"[0]: expected a string"));
  EXPECT_THAT(run.err, HasSubstr("line 4: field \"prediction\": missing; expected a string"));
  EXPECT_THAT(run.err, HasSubstr("line 7: not a JSON object"));
  EXPECT_EQ(RunProgram({"iha-eval", "score", "ruler", "/no/such/file"}).exit.code, 3);
}

}  // namespace
}  // namespace iha
