// Commands on a finished database: table, list, explain, backup, export samples, and their refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/file.h"
#include "model/fake_model.h"
#include "tests/cli/two_models.h"
#include "tests/support/graders.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

namespace iha {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::RunProgram;
using testing::TempDir;
using Json = nlohmann::json;

class StoreCommands : public testing::TwoModels {
 protected:
  void SetUp() override {
    MakeModels();
    const RunResult run =
        RunProgram({"iha-eval",   "run",        "--model",          Path("alpha"),
                    "--model",    Path("beta"), "--bench",          "gsm8k_demo?samples=2&temperature=0.8",
                    "--limit",    "3",          "--max-new-tokens", "48",
                    "--numerics", "fake",       "--threads",        "1",
                    "--quiet",    "--db",       Path("x.db"),       "--out",
                    Path("o")});
    ASSERT_EQ(run.exit.code, 0) << run.err;
    const RunResult list = RunProgram({"iha-eval", "list", "--db", Path("x.db"), "--json"});
    ASSERT_EQ(list.exit.code, 0) << list.err;
    const Json line = Json::parse(list.out, nullptr, false);
    ASSERT_TRUE(line.is_object()) << list.out;
    EXPECT_EQ(line["state"], "done");
    EXPECT_EQ(line["finished"], 6);
    sweep_ = line["sweep"].get<std::string>();
  }
};

TEST_F(StoreCommands, TableIsTheRunsOwnInEveryFormat) {
  const std::vector<std::string> table = {"iha-eval", "table", "--db", Path("x.db"), "--sweep", sweep_.substr(0, 8)};
  for (const char* format : {"md", "csv", "json"}) {
    std::vector<std::string> argv = table;
    argv.insert(argv.end(), {"--format", format});
    const RunResult result = RunProgram(argv);
    EXPECT_EQ(result.exit.code, 0) << result.err;
    EXPECT_EQ(result.out, Read(std::string("o/table.") + format)) << format;
  }
  std::vector<std::string> argv = table;
  argv.insert(argv.end(), {"--format", "json", "--baseline", "beta"});
  EXPECT_EQ(Json::parse(RunProgram(argv).out, nullptr, false)["baseline"], "beta");
  auto with = [&](const std::string& flag, const std::string& value) {
    std::vector<std::string> more = table;
    more.insert(more.end(), {flag, value});
    return more;
  };
  Refuses(with("--format", "docx"), 2, "docx");
  Refuses(with("--layout", "table3"), 2, "table3");
  Refuses(with("--baseline", "gamma"), 3, "gamma");
  Refuses(with("--grader", "gsm8k/2"), 3, "unknown grader version \"gsm8k/2\"");
  EXPECT_EQ(RunProgram(with("--grader", "gsm8k/1")).out, Read("o/table.md"));
  Refuses({"iha-eval", "table", "--coordinator", "127.0.0.1:9", "--sweep", "1", "--grader", "gsm8k/1"}, 2, "--db");
  Refuses({"iha-eval", "table", "--db", Path("x.db"), "--sweep", "zz"}, 3, "zz");
}

TEST_F(StoreCommands, IntervalsCanBeAboutTheBenchmarksOwnItems) {
  const auto table = [&](const std::vector<std::string>& more) {
    std::vector<std::string> argv = {"iha-eval", "table", "--sweep", sweep_.substr(0, 8), "--json"};
    argv.insert(argv.end(), more.begin(), more.end());
    return RunProgram(argv);
  };
  const RunResult about = table({"--db", Path("x.db"), "--target", "benchmark"});
  EXPECT_EQ(about.exit.code, 0) << about.err;
  const Json json = Json::parse(about.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << about.out;
  EXPECT_EQ(json["interval_target"], "benchmark");
  // Three of the demo set's items, each drawn twice: a mean of samples has an interval, a vote has none.
  for (const Json& cell : json["rows"][0]["cells"]) {
    const bool vote = cell["metric"].get<std::string>().starts_with("maj@");
    EXPECT_EQ(cell.contains("interval"), !vote) << cell;
  }
  EXPECT_THAT(json["notes"].dump(), HasSubstr("its value is no mean of samples"));
  EXPECT_EQ(table({"--db", Path("x.db"), "--target", "population"}).out, Read("o/table.json"));
  Refuses(table({"--db", Path("x.db"), "--target", "world"}), 2, "--target: ");
  Refuses(table({"--coordinator", "127.0.0.1:1", "--target", "benchmark"}), 2, "--target requires --db");
}

TEST_F(StoreCommands, ExplainTellsASamplesStory) {
  const std::vector<std::string> explain = {"iha-eval", "explain", "--db",    Path("x.db"),
                                            "--sweep",  sweep_,    "--model", "beta"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), explain.begin(), explain.end());
    return more;
  };
  const RunResult result = RunProgram(with({"--item", "1", "--sample", "1", "--json"}));
  ASSERT_EQ(result.exit.code, 0) << result.err;
  const Json story = Json::parse(result.out, nullptr, false);
  ASSERT_TRUE(story.is_object()) << result.out;
  // The same sample in samples.jsonl: model beta, item 1, sample 1 is line 2 * 3 + 2 + 1, from 0.
  std::istringstream lines(Read("o/samples.jsonl"));
  std::string line;
  for (int i = 0; i <= 9; i++) std::getline(lines, line);
  const Json sample = Json::parse(line, nullptr, false);
  ASSERT_EQ(story["samples"].size(), 1);
  EXPECT_EQ(story["samples"][0]["sample"], 1);
  EXPECT_EQ(story["samples"][0]["text"], sample["text"]);
  EXPECT_EQ(story["samples"][0]["generation"], sample["generation"]);
  EXPECT_EQ(story["item_id"], sample["item_id"]);
  EXPECT_EQ(story["gradings"], Json::array({"gsm8k/1"}));
  for (const Json& grade : story["samples"][0]["grades"]) {
    EXPECT_EQ(grade["group"], sample["grades"][grade["metric"].get<std::string>()]["group"]);
  }
  EXPECT_THAT(story["prompt"].get<std::string>(), HasSubstr("Question: "));
  EXPECT_EQ(story["attempts"][0]["event"], "granted");
  EXPECT_EQ(story["attempts"].back()["event"], "done");
  const RunResult text = RunProgram(with({"--item", "0"}));
  EXPECT_EQ(text.exit.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("gsm8k.strict_match"));
  EXPECT_THAT(text.out, Not(HasSubstr("winner: \n")));
  EXPECT_THAT(text.out, Not(HasSubstr("reason: \n")));
  EXPECT_THAT(text.out, HasSubstr("  | Question: "));

  const Json by_id = Json::parse(RunProgram(with({"--item", story["item_id"], "--json"})).out, nullptr, false);
  EXPECT_EQ(by_id["index"], 1) << by_id;

  Refuses(with({"--item", "3"}), 3, "item 3: the job has 3 items");
  Refuses(with({"--item", "none"}), 3, "--item: found none; the job has 3 items: an index from 0, or an id, ");
  Refuses(with({"--item", "0", "--sample", "2"}), 3, "--sample: found 2");
  Refuses(with({"--item", "0", "--entry", "1"}), 3, "entry 1");
  Refuses(with({"--item", "0", "--grader", "gsm8k/2"}), 3, "unknown grader version \"gsm8k/2\"");
  Refuses({"iha-eval", "explain", "--db", Path("x.db"), "--sweep", sweep_, "--model", "bta", "--item", "0"}, 3,
          "did you mean \"beta\"?");
  Refuses({"iha-eval", "explain", "--db", Path("no.db"), "--sweep", sweep_, "--model", "beta", "--item", "0"}, 3,
          "no.db");
}

TEST_F(StoreCommands, RegradeOfTheSameGradersWritesNothing) {
  const std::vector<std::string> regrade = {"iha-eval", "regrade", "--db", Path("x.db"), "--sweep", sweep_};
  const RunResult text = RunProgram(regrade);
  EXPECT_EQ(text.exit.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("alpha · gsm8k_demo: equal to gsm8k/1\n"));
  std::vector<std::string> argv = regrade;
  argv.emplace_back("--json");
  std::istringstream lines(RunProgram(argv).out);
  std::string line;
  int jobs = 0;
  for (; std::getline(lines, line); ++jobs) {
    const Json job = Json::parse(line, nullptr, false);
    EXPECT_TRUE(job["after"].is_null()) << line;
    EXPECT_EQ(job["changed"], 0);
    EXPECT_EQ(job["items"], 3);
    for (const Json& metric : job["metrics"]) EXPECT_EQ(metric["mean_before"], metric["mean_after"]);
  }
  EXPECT_EQ(jobs, 2);
  EXPECT_EQ(RunProgram({"iha-eval", "fsck", "--db", Path("x.db")}).exit.code, 0);
  Refuses({"iha-eval", "regrade", "--db", Path("no.db"), "--sweep", sweep_}, 3, "no.db");
  Refuses({"iha-eval", "regrade", "--db", Path("x.db"), "--sweep", "zz"}, 3, "zz");
  EXPECT_FALSE(ReadFile(Path("no.db")).ok());
}

// What was unscored for want of libraries is stored anew; the command that is printed shows it.
TEST_F(StoreCommands, TheCommandThatRegradePrintsShowsItsTable) {
  IHA_REQUIRE_GRADERS(libraries);
  ASSERT_TRUE(WriteFileAtomic(Path("q.jsonl"), "{\"question\":\"q\",\"answer\":\"7\"}\n").ok());
  const std::string db = Path("it's a file.db");
  const RunResult run = RunProgram({"iha-eval", "run", "--model", Path("alpha"), "--bench",
                                    "jsonl:" + Path("q.jsonl") + "?metric=math.prm800k", "--max-new-tokens", "8",
                                    "--numerics", "fake", "--quiet", "--db", db, "--out", Path("r")});
  ASSERT_EQ(run.exit.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("(0/1)"));
  const std::string sweep = Json::parse(RunProgram({"iha-eval", "list", "--db", db, "--json"}).out)["sweep"];
  const RunResult regraded = RunProgram({"iha-eval", "regrade", "--db", db, "--sweep", sweep, "--graders", libraries});
  ASSERT_EQ(regraded.exit.code, 0) << regraded.err;
  const size_t at = regraded.out.find("its table: iha-eval ");
  ASSERT_NE(at, std::string::npos) << regraded.out;
  const std::string command = regraded.out.substr(at + 11);
  const RunResult table = RunProgram({"/bin/sh", "-c", std::string(IHA_PROGRAM_FOLDER "/") + command});
  EXPECT_EQ(table.exit.code, 0) << command << table.err;
  EXPECT_THAT(table.out, HasSubstr("0.0"));
  EXPECT_THAT(table.out, Not(HasSubstr("(0/1)")));
}

TEST_F(StoreCommands, ExportAndBackupHoldTheSame) {
  const RunResult out =
      RunProgram({"iha-eval", "export", "samples", "--db", Path("x.db"), "--sweep", sweep_, "--out", "-"});
  EXPECT_EQ(out.exit.code, 0) << out.err;
  EXPECT_EQ(out.out, Read("o/samples.jsonl"));

  const RunResult backup = RunProgram({"iha-eval", "backup", "--db", Path("x.db"), "--out", Path("b.db")});
  EXPECT_EQ(backup.exit.code, 0) << backup.err;
  EXPECT_EQ(RunProgram({"iha-eval", "fsck", "--db", Path("b.db")}).exit.code, 0);
  const RunResult copy = RunProgram(
      {"iha-eval", "export", "samples", "--db", Path("b.db"), "--sweep", sweep_, "--out", Path("copy.jsonl")});
  EXPECT_EQ(copy.exit.code, 0) << copy.err;
  EXPECT_EQ(Read("copy.jsonl"), out.out);

  const std::string before = Read("b.db");
  Refuses({"iha-eval", "backup", "--db", Path("x.db"), "--out", Path("b.db")}, 3, "b.db: exists");
  EXPECT_EQ(Read("b.db"), before);
  Refuses({"iha-eval", "backup", "--db", Path("no.db"), "--out", Path("c.db")}, 3, "no.db");
  Refuses({"iha-eval", "backup", "--db", Path("x.db"), "--out", Path("no/such/c.db")}, 3, "no/such");
  Refuses({"iha-eval", "export", "samples", "--db", Path("x.db"), "--sweep", "zz", "--out", "-"}, 3, "zz");
  EXPECT_FALSE(ReadFile(Path("c.db")).ok());
}

}  // namespace
}  // namespace iha
