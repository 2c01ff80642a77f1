// gate and export --baseline as a CI job runs them: verdicts by exit code, every output, and their refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/file.h"
#include "tests/cli/two_models.h"

namespace iha {
namespace {

using ::testing::HasSubstr;
using testing::RunProgram;
using Json = nlohmann::json;

// Two models over 40 questions.
class GateCommand : public testing::TwoModels {
 protected:
  void SetUp() override {
    MakeModels();
    sweep_ = AskWhatAlphaSays(40);
  }
  std::string RunBoth(const std::string& out, int limit, const std::string& options = "",
                      const std::string& file = "q") const {
    return RunRows(file, out, {"--limit", std::to_string(limit)}, options);
  }
  RunResult Gate(const std::string& candidate, const std::string& baseline, std::vector<std::string> more = {}) const {
    std::vector<std::string> argv = {"iha-eval",    "gate",    "--db",       Path("x.db"),
                                     "--candidate", candidate, "--baseline", baseline};
    argv.insert(argv.end(), more.begin(), more.end());
    return RunProgram(argv);
  }
  std::string Name(const std::string& model) const { return sweep_.substr(0, 16) + "/" + model; }
};

TEST_F(GateCommand, PassFailAndInconclusiveHaveTheirExitCodes) {
  const std::string alpha = ExportBaseline("alpha", "alpha.json"), beta = ExportBaseline("beta", "beta.json");
  const RunResult same = Gate(Name("alpha"), alpha);
  EXPECT_EQ(same.exit.code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("bit-identical outputs on 40 items"));
  EXPECT_EQ(Gate(Name("alpha"), beta).exit.code, 0);
  const RunResult worse = Gate(Name("beta"), alpha);
  EXPECT_EQ(worse.exit.code, 5) << worse.out << worse.err;
  EXPECT_THAT(worse.out, HasSubstr("FAIL: worse in 1 of 1 metric: jsonl:"));
  // A baseline of the database is held to the same margins as its bundle.
  EXPECT_EQ(Gate(Name("beta"), Name("alpha"), {"--json"}).out, Gate(Name("beta"), alpha, {"--json"}).out);

  // Against a baseline that is as bad, but in other words: 40 items can't tell a loss of 0.1 points.
  const std::vector<std::string> tight = {"--margin", "0.1", "--metrics", "exact"};
  std::string text = ReadFile(beta).value();
  text.replace(text.find("\"outputs\": \"") + 12, 1, text[text.find("\"outputs\": \"") + 12] == '0' ? "1" : "0");
  ASSERT_TRUE(WriteFileAtomic(beta, text).ok());
  const RunResult open = Gate(Name("beta"), beta, tight);
  EXPECT_EQ(open.exit.code, 6) << open.out << open.err;
  EXPECT_THAT(open.out, HasSubstr("more items would decide"));
  const auto with = [&](const std::string& policy) {
    std::vector<std::string> flags = tight;
    flags.insert(flags.end(), {"--inconclusive", policy});
    return Gate(Name("beta"), beta, flags).exit.code;
  };
  EXPECT_EQ(with("pass"), 0);
  EXPECT_EQ(with("fail"), 5);
  EXPECT_EQ(with("exit6"), 6);
}

TEST_F(GateCommand, SequentialNeedsFewerItemsForWhatIsPlain) {
  const std::string alpha = ExportBaseline("alpha", "alpha.json");
  const RunResult worse = Gate(Name("beta"), alpha, {"--sequential", "--json"});
  EXPECT_EQ(worse.exit.code, 5) << worse.err;
  const Json json = Json::parse(worse.out, nullptr, false);
  EXPECT_LT(json["items_used"], 40);
  EXPECT_EQ(json["items_planned"], 40);
  EXPECT_THAT(worse.err, HasSubstr("of the work not needed"));
  EXPECT_EQ(Gate(Name("beta"), alpha, {"--sequential", "--target", "benchmark"}).exit.code, 5);
}

TEST_F(GateCommand, WritesWhatCiSystemsRead) {
  const std::string alpha = ExportBaseline("alpha", "alpha.json");
  const RunResult result =
      Gate(Name("beta"), alpha, {"--junit", Path("g.xml"), "--markdown", Path("g.md"), "--github", "--json"});
  EXPECT_EQ(result.exit.code, 5) << result.err;
  const Json json = Json::parse(result.out, nullptr, false);
  EXPECT_EQ(json["verdict"], "FAIL");
  EXPECT_EQ(json["metrics"][0]["method"], "tango");
  EXPECT_THAT(result.err, HasSubstr("::error title=iha-eval gate FAIL"));
  EXPECT_THAT(ReadFile(Path("g.xml")).value_or(""), HasSubstr("<failure message=\"worse: "));
  EXPECT_THAT(ReadFile(Path("g.md")).value_or(""), HasSubstr("### Evaluation gate: FAIL\n"));
}

TEST_F(GateCommand, RefusesRunsThatAreNotComparable) {
  const std::string alpha = ExportBaseline("alpha", "alpha.json");
  const std::string shorter = RunBoth("short", 39).substr(0, 16) + "/beta";
  Refuses(Gate(shorter, alpha), 3, "items: candidate 39, baseline 40");
  const std::string other = RunBoth("other", 40, "?prompt=Q:%20{question}").substr(0, 16) + "/beta";
  Refuses(Gate(other, alpha), 3, "option prompt: candidate Q: {question}, baseline {question}");
}

TEST_F(GateCommand, RefusesBadFlagsAndFiles) {
  const std::string alpha = ExportBaseline("alpha", "alpha.json");
  Refuses(Gate("nothing", alpha), 2, "--candidate: found \"nothing\", expected SWEEP/MODEL");
  Refuses(Gate(Name("gamma"), alpha), 3, "unknown model \"gamma\"");
  Refuses(Gate("ffff0000/alpha", alpha), 3, "sweep ffff0000: not in this database");
  Refuses(Gate(Name("alpha"), "no.json"), 3, "--baseline (no file of that name): found \"no.json\"");
  Refuses(Gate(Name("alpha"), alpha, {"--margin", "0"}), 2, "--margin: found \"0\"");
  Refuses(Gate(Name("alpha"), alpha, {"--margin", "nan"}), 2, "--margin: found \"nan\"");
  Refuses(Gate(Name("alpha"), alpha, {"--metrics", "exakt"}), 3, "unknown metric \"exakt\"");
  Refuses(Gate(Name("alpha"), alpha, {"--junit", Path("no/g.xml")}), 3, "no/g.xml");
  Refuses(Gate(Name("alpha"), alpha, {"--sequential", "--github"}), 2, "--sequential: prints text or --json");
  EXPECT_EQ(Gate(Name("alpha"), alpha, {"--alpha", "0.7"}).exit.code, 2);
  Refuses(Gate(Name("alpha"), alpha, {"--target", "benchmark"}), 2, "--target requires --sequential");
  Refuses(Gate(Name("alpha"), alpha, {"--junit", "-", "--json"}), 2, "found 2 of them, expected one for stdout");
  const RunResult junit = Gate(Name("alpha"), alpha, {"--junit", "-"});
  EXPECT_EQ(junit.exit.code, 0) << junit.err;
  EXPECT_TRUE(junit.out.starts_with("<?xml")) << junit.out;
  EXPECT_THAT(junit.err, ::testing::HasSubstr("PASS: "));
  EXPECT_EQ(Gate(Name("alpha"), alpha, {"--inconclusive", "maybe"}).exit.code, 2);
  const auto refused_export = [&](std::vector<std::string> flags, int code, const std::string& message) {
    flags.insert(flags.begin(), {"iha-eval", "export"});
    Refuses(RunProgram(flags), code, message);
  };
  refused_export({}, 2, "expected --baseline or a subcommand");
  refused_export({"--baseline", Name("alpha")}, 2, "--db and --out are required");
  refused_export({"--baseline", "--db", Path("x.db"), "--out", "-"}, 2, "expected SWEEP/MODEL, or --sweep and --model");
  refused_export({"--baseline", Name("gamma"), "--db", Path("x.db"), "--out", "-"}, 3, "unknown model \"gamma\"");
  // Both ways to name a run give the same bytes.
  const RunResult parts = RunProgram(
      {"iha-eval", "export", "--baseline", "--sweep", sweep_, "--model", "alpha", "--db", Path("x.db"), "--out", "-"});
  EXPECT_EQ(parts.out, ReadFile(alpha).value_or("")) << parts.err;
}

// Each says what was found, what was expected and how to get it.
TEST_F(GateCommand, RefusesOtherFilesAsBaseline) {
  const std::string alpha = ExportBaseline("alpha", "alpha.json");
  const std::string todo = "write one with iha-eval export --baseline SWEEP/MODEL --db FILE --out FILE";
  const auto refused = [&](const std::string& file, const std::string& found) {
    const RunResult plain = Gate(Name("alpha"), file);
    Refuses(plain, 3, "--baseline: " + file + ": ");
    Refuses(plain, 3, found);
    Refuses(plain, 3, todo);
    Refuses(Gate(Name("alpha"), file, {"--sequential"}), 3, found);
  };
  refused(Path("x.db"), "found a database (for a run of --db give SWEEP/MODEL alone), expected a baseline bundle");
  refused(Path("."), "found a folder, expected a baseline bundle");
  ASSERT_TRUE(WriteFileAtomic(Path("empty"), "").ok());
  refused(Path("empty"), "found an empty file");
  const std::string text = ReadFile(alpha).value();
  ASSERT_TRUE(WriteFileAtomic(Path("cut.json"), text.substr(0, text.size() / 2)).ok());
  Refuses(Gate(Name("alpha"), Path("cut.json")), 3, "expected a whole baseline bundle; " + todo);
  ASSERT_TRUE(WriteFileAtomic(Path("t.json"), R"({"schema": "iha-eval/table/1", "rows": []})").ok());
  refused(Path("t.json"), "field \"schema\": found \"iha-eval/table/1\", expected \"iha-eval/baseline/1\"");
  ASSERT_TRUE(WriteFileAtomic(Path("o.json"), R"({"rows": []})").ok());
  refused(Path("o.json"), "expected an object of schema \"iha-eval/baseline/1\"");
  // And a bundle where the database is expected.
  Refuses(RunProgram({"iha-eval", "gate", "--db", alpha, "--candidate", Name("alpha"), "--baseline", alpha}), 3,
          "alpha.json: not an iha-eval database; give another path to --db");
}

}  // namespace
}  // namespace iha
