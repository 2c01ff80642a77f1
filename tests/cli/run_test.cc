// `iha-eval run` end to end on a fake checkpoint: real coordinator, gRPC, worker processes and database. Whatever the
// number of workers, the batch or the crashes, the tables and samples have the same bytes (INV-TAB-2).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/file.h"
#include "model/fake_model.h"
#include "tests/model/torch/require_torch.h"
#include "tests/support/programs.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"

namespace iha {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::RunProgram;
using testing::TempDir;

class RunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(model::MakeFakeCheckpoint(Model("alpha"), {.seed = 1, .style = model::FakeStyle::kWords}).ok());
    ASSERT_TRUE(model::MakeFakeCheckpoint(Model("beta"), {.seed = 2, .style = model::FakeStyle::kWords}).ok());
  }
  std::string Model(const std::string& name) const { return dir_.path() + "/models/" + name; }

  // Runs both models on the demo set into OUT; extra flags appended.
  RunResult Run(const std::string& out, const std::vector<std::string>& extra, const std::string& limit = "12") const {
    std::vector<std::string> argv = {"iha-eval",
                                     "run",
                                     "--model",
                                     Model("alpha"),
                                     "--model",
                                     Model("beta"),
                                     "--bench",
                                     "gsm8k_demo",
                                     "--bench",
                                     "gsm8k_demo?samples=5&temperature=0.8",
                                     "--limit",
                                     limit,
                                     "--max-new-tokens",
                                     "48",
                                     "--numerics",
                                     "fake",
                                     "--threads",
                                     "1",
                                     "--out",
                                     Out(out)};
    argv.insert(argv.end(), extra.begin(), extra.end());
    return RunProgram(argv);
  }
  std::string Out(const std::string& name) const { return dir_.path() + "/" + name; }
  std::string Read(const std::string& out, const std::string& file) const {
    const auto text = ReadFile(Out(out) + "/" + file);
    EXPECT_TRUE(text.ok()) << text.status();
    return text.value_or("");
  }
  void ExpectSameResults(const std::string& a, const std::string& b) const {
    for (const char* file : {"table.json", "table.md", "table.csv", "table.html", "samples.jsonl"}) {
      EXPECT_EQ(Read(a, file), Read(b, file)) << file;
    }
  }
  void ExpectSound(const std::string& out) const {
    const RunResult fsck = RunProgram({"iha-eval", "fsck", "--db", Out(out) + "/iha-eval.db"});
    EXPECT_EQ(fsck.exit.code, 0) << fsck.out << fsck.err;
  }

  TempDir dir_;
};

TEST_F(RunTest, WorkersAndBatchesChangeNoByte) {
  const RunResult one = Run("one", {"--workers", "1", "--max-batch", "1"});
  ASSERT_EQ(one.exit.code, 0) << one.err;
  EXPECT_THAT(one.out, AllOf(HasSubstr("alpha"), HasSubstr("beta"), HasSubstr("12/12")));
  ASSERT_EQ(Run("batch", {"--workers", "1", "--max-batch", "16"}).exit.code, 0);
  ASSERT_EQ(Run("three", {"--workers", "3", "--max-batch", "16"}).exit.code, 0);
  ASSERT_EQ(Run("tiny_cache", {"--workers", "1", "--kv-memory-mib", "1"}).exit.code, 0);
  ExpectSameResults("one", "batch");
  ExpectSameResults("one", "three");
  ExpectSameResults("one", "tiny_cache");
  ExpectSound("three");
  // The runs are worth comparing: the models differ, and something was scored right.
  const auto table = nlohmann::json::parse(Read("one", "table.json"));
  EXPECT_NE(table["rows"][0]["cells"], table["rows"][1]["cells"]);
  EXPECT_EQ(table["rows"][0]["cells"][0]["scored"], 12);
}

// Workers that die at the worst moments: before a lease is begun, with a sample done, between put and commit.
TEST_F(RunTest, KilledWorkersChangeNoByte) {
  ASSERT_EQ(Run("calm", {}).exit.code, 0);
  const std::vector<std::string> points = {"worker.lease.start:kill:2", "worker.sample.done:kill:3",
                                           "worker.outbox.between_put_and_commit:kill:2"};
  for (size_t i = 0; i < points.size(); i++) {
    SCOPED_TRACE(points[i]);
    const std::string out = "killed" + std::to_string(i);
    const RunResult run = Run(out, {"--workers", "3", "--worker-fault", points[i]});
    ASSERT_EQ(run.exit.code, 0) << run.err;
    EXPECT_GE(nlohmann::json::parse(Read(out, "run.json"))["worker_restarts"], 1);
    ExpectSameResults("calm", out);
    ExpectSound(out);
  }
}

// The coordinator's process dies around a commit; the same command goes on where it stopped.
TEST_F(RunTest, KilledCoordinatorResumesToTheSameBytes) {
  ASSERT_EQ(Run("calm", {}).exit.code, 0);
  const std::vector<std::string> points = {"store.commit.after_insert:kill:4", "store.commit.after_commit:kill:9",
                                           "store.commit.after_commit:kill:12"};
  for (size_t i = 0; i < points.size(); i++) {
    SCOPED_TRACE(points[i]);
    const std::string out = "dead" + std::to_string(i);
    const RunResult killed = Run(out, {"--workers", "2", "--fault", points[i]});
    ASSERT_EQ(killed.exit.signal, SIGKILL) << killed.err;
    const RunResult resumed = Run(out, {"--workers", "2"});
    ASSERT_EQ(resumed.exit.code, 0) << resumed.err;
    ExpectSameResults("calm", out);
    ExpectSound(out);
  }
}

TEST_F(RunTest, ASecondRunGeneratesNothingAndKeepsTheBytes) {
  ASSERT_EQ(Run("again", {}).exit.code, 0);
  const std::string table = Read("again", "table.json");
  const std::string samples = Read("again", "samples.jsonl");
  std::filesystem::remove(Out("again") + "/worker-0.log");
  const RunResult second = Run("again", {});
  ASSERT_EQ(second.exit.code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("48 of 48 items done"));
  EXPECT_FALSE(std::filesystem::exists(Out("again") + "/worker-0.log")) << "a worker was started";
  EXPECT_EQ(Read("again", "table.json"), table);
  EXPECT_EQ(Read("again", "samples.jsonl"), samples);
}

// Programs: run in the workers' sandbox, whose verdicts stand in the same bytes after any crash.
TEST_F(RunTest, ProgramsAreJudgedToTheSameBytes) {
  IHA_REQUIRE_DATA(data);
  const auto run = [&](const std::string& out, const std::vector<std::string>& extra) {
    std::vector<std::string> argv = {"iha-eval", "run", "--model", Model("alpha"), "--data-root", data};
    for (const char* bench : {"humaneval?samples=3&temperature=0.8", "mbpp", "mbpp_instruct?prompt=plain"}) {
      argv.insert(argv.end(), {"--bench", bench});
    }
    argv.insert(argv.end(),
                {"--limit", "6", "--max-new-tokens", "24", "--numerics", "fake", "--threads", "1", "--out", Out(out)});
    argv.insert(argv.end(), extra.begin(), extra.end());
    return RunProgram(argv);
  };
  const RunResult calm = run("calm", {"--workers", "1"});
  ASSERT_EQ(calm.exit.code, 0) << calm.err;
  EXPECT_THAT(calm.out, AllOf(HasSubstr("humaneval.pass@1"), HasSubstr("humaneval.pass@3"), HasSubstr("mbpp.pass@1")));
  ASSERT_EQ(run("dead", {"--workers", "2", "--fault", "store.commit.after_insert:kill:5"}).exit.signal, SIGKILL);
  const RunResult resumed = run("dead", {"--workers", "2", "--worker-fault", "worker.sample.done:kill:4"});
  ASSERT_EQ(resumed.exit.code, 0) << resumed.err;
  ExpectSameResults("calm", "dead");
  ExpectSound("dead");
  EXPECT_THAT(Read("calm", "samples.jsonl"), HasSubstr("before the program's end"));
  const RunResult list = RunProgram({"iha-eval", "list", "--db", Out("calm") + "/iha-eval.db", "--json"});
  const std::string sweep = nlohmann::json::parse(list.out)["sweep"];
  const RunResult story =
      RunProgram({"iha-eval", "explain", "--db", Out("calm") + "/iha-eval.db", "--sweep", sweep, "--model", "alpha",
                  "--item", "0", "--sample", "1", "--data-root", data, "--run", "--json"});
  ASSERT_EQ(story.exit.code, 0) << story.err;
  const auto sample = nlohmann::json::parse(story.out)["samples"][0];
  EXPECT_THAT(sample["program"].get<std::string>(), HasSubstr("check(has_close_elements)"));
  EXPECT_EQ(sample["ran"]["result"], sample["grades"][0]["extracted"]);
  const std::string db = Out("calm") + "/iha-eval.db";
  const RunResult by_id = RunProgram({"iha-eval", "explain", "--db", db, "--sweep", sweep, "--model", "alpha", "--item",
                                      "humaneval/1", "--data-root", data, "--json"});
  EXPECT_EQ(nlohmann::json::parse(by_id.out)["index"], 1) << by_id.err;
  EXPECT_EQ(nlohmann::json::parse(Read("calm", "run.json"))["suspects"], nlohmann::json::array());
}

// Of any number of workers, of workers that were killed, of a run that was resumed: what was drawn is told once.
TEST_F(RunTest, TelemetryIsInTheRunsRecordAndInNothingElse) {
  const RunResult plain = Run("plain", {});
  ASSERT_EQ(plain.exit.code, 0) << plain.err;
  const RunResult profiled = Run("profiled", {"--workers", "2", "--profile"});
  ASSERT_EQ(profiled.exit.code, 0) << profiled.err;
  EXPECT_EQ(profiled.out, plain.out) << "the profile is on stderr";
  ExpectSameResults("plain", "profiled");
  EXPECT_THAT(profiled.err, HasSubstr("operation "));
  EXPECT_THAT(profiled.err, HasSubstr("\nsampling, text "));
  EXPECT_THAT(profiled.err, HasSubstr("\ndecode: "));
  EXPECT_THAT(plain.err, ::testing::Not(HasSubstr("operation ")));

  int64_t drawn = 0;
  std::istringstream samples(Read("plain", "samples.jsonl"));
  for (std::string line; std::getline(samples, line);) drawn += nlohmann::json::parse(line).at("tokens").get<int64_t>();
  for (const char* out : {"plain", "profiled"}) {
    const auto run = nlohmann::json::parse(Read(out, "run.json"));
    EXPECT_EQ(run.at("telemetry").at("total").at("generated_tokens"), drawn) << out;
    EXPECT_EQ(run.at("telemetry").at("jobs").size(), 4u);
    EXPECT_THAT(run.at("engine").at("simd").get<std::string>(), ::testing::MatchesRegex("[A-Z0-9_]+"));
    EXPECT_THAT(run.at("engine").at("build").get<std::string>(), ::testing::StartsWith("Highway "));
    EXPECT_TRUE(run.at("machine_peak").is_null()) << "the fake model notes no operation";
    const RunResult stored =
        RunProgram({"iha-eval", "profile", "--db", Out(out) + "/iha-eval.db", "--sweep", run.at("sweep"), "--json"});
    ASSERT_EQ(stored.exit.code, 0) << stored.err;
    auto profile = nlohmann::json::parse(stored.out);
    EXPECT_EQ(profile.at("sweep"), run.at("sweep"));
    profile.erase("sweep");
    EXPECT_EQ(profile, run.at("telemetry"));
  }
  // A second run finds all done; the sweep's telemetry is still what it was.
  const auto first = nlohmann::json::parse(Read("plain", "run.json")).at("telemetry");
  ASSERT_EQ(Run("plain", {"--profile"}).exit.code, 0);
  EXPECT_EQ(nlohmann::json::parse(Read("plain", "run.json")).at("telemetry"), first);

  const RunResult unknown =
      RunProgram({"iha-eval", "profile", "--db", Out("plain") + "/iha-eval.db", "--sweep", "ffff"});
  EXPECT_EQ(unknown.exit.code, 3);
  EXPECT_EQ(unknown.out, "");
  EXPECT_THAT(unknown.err, HasSubstr("iha-eval profile: "));
}

// Another sweep over the same prompts in one database takes its generations from there; another model never does.
TEST_F(RunTest, SweepsShareGenerationsAndModelsDoNot) {
  const std::string db = dir_.path() + "/shared.db";
  ASSERT_EQ(Run("first", {"--db", db}).exit.code, 0);
  ASSERT_EQ(Run("second", {"--db", db, "--tag", "again", "--worker-fault", "worker.sample.done:kill:1"}).exit.code, 0);
  // No sample was generated, or the armed fault would have killed the worker.
  EXPECT_EQ(nlohmann::json::parse(Read("second", "run.json"))["worker_restarts"], 0);
  EXPECT_EQ(Read("first", "samples.jsonl"), Read("second", "samples.jsonl"));
  const auto lines = Read("first", "samples.jsonl");
  EXPECT_THAT(lines, AllOf(HasSubstr("\"model\":\"alpha\""), HasSubstr("\"model\":\"beta\"")));
}

// A half-done sweep belongs to the weights it began with: other weights under the same name are refused, by name.
TEST_F(RunTest, ChangedWeightsUnderAHalfDoneSweepAreRefused) {
  ASSERT_EQ(Run("swap", {"--fault", "store.commit.after_commit:kill:9"}).exit.signal, SIGKILL);
  std::filesystem::remove_all(Model("alpha"));
  ASSERT_TRUE(model::MakeFakeCheckpoint(Model("alpha"), {.seed = 9, .style = model::FakeStyle::kWords}).ok());
  const RunResult refused = Run("swap", {});
  EXPECT_EQ(refused.exit.code, 3) << refused.err;
  EXPECT_THAT(refused.err, AllOf(HasSubstr("alpha"), HasSubstr("weights")));
  // Asking for more items is another sweep, bound anew.
  const RunResult more = Run("swap", {}, "13");
  EXPECT_EQ(more.exit.code, 0) << more.err;
}

// A finished sweep is not the table of whatever lies in the folder now.
TEST_F(RunTest, ChangedWeightsUnderAFinishedSweepAreRefused) {
  ASSERT_EQ(Run("done", {}).exit.code, 0);
  std::filesystem::remove_all(Model("alpha"));
  ASSERT_TRUE(model::MakeFakeCheckpoint(Model("alpha"), {.seed = 9, .style = model::FakeStyle::kWords}).ok());
  const RunResult refused = Run("done", {});
  EXPECT_EQ(refused.exit.code, 3) << refused.err;
  EXPECT_THAT(refused.err, AllOf(HasSubstr("alpha: has weights"), HasSubstr("give --tag TEXT")));
  const RunResult tagged = Run("done", {"--tag", "new"});
  EXPECT_EQ(tagged.exit.code, 0) << tagged.err;
}

TEST_F(RunTest, DryRunPrintsThePlanAndRunsNothing) {
  const RunResult run = Run("dry", {"--dry-run"});
  ASSERT_EQ(run.exit.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("total: 4 jobs, 48 items"), HasSubstr("alpha"), HasSubstr("12 items")));
  EXPECT_FALSE(std::filesystem::exists(Out("dry")));
  EXPECT_THAT(run.out, HasSubstr(" prompt tokens, at most "));
  // Without the tokenizer it is an estimate, and no bound.
  std::ofstream(Out("away.json")) << R"({"version": 1, "models": ["away"], "benchmarks": ["gsm8k_demo"]})";
  const RunResult away = RunProgram({"iha-eval", "run", "--sweep", Out("away.json"), "--dry-run"});
  EXPECT_EQ(away.exit.code, 0) << away.err;
  EXPECT_THAT(away.out, AllOf(HasSubstr("total: 1 job, 24 items, about "), ::testing::Not(HasSubstr("at most"))));
}

// A folder's name may hold what a flag's syntax uses, and a chat goes through the checkpoint's own template.
TEST_F(RunTest, OddNamesAndChatPrompts) {
  const std::string name = "epoch=3-step=100 (a)";
  ASSERT_TRUE(model::MakeFakeCheckpoint(Model(name), {.style = model::FakeStyle::kWords}).ok());
  const auto run = [&](const std::string& spec, const std::string& out) {
    return RunProgram({"iha-eval", "run", "--model", Model(name), "--bench", spec, "--limit", "2", "--numerics", "fake",
                       "--out", Out(out)});
  };
  const RunResult plain = run("gsm8k_demo?fewshot=1&max_new_tokens=16", "plain");
  ASSERT_EQ(plain.exit.code, 0) << plain.err;
  EXPECT_THAT(plain.out, HasSubstr("epoch=3-step=100 (a)"));
  const RunResult chat = run("gsm8k_demo?fewshot=1&max_new_tokens=16&prompt=chat", "chat");
  ASSERT_EQ(chat.exit.code, 0) << chat.err;
  EXPECT_THAT(chat.out, HasSubstr("2/2"));
  EXPECT_NE(Read("plain", "samples.jsonl"), Read("chat", "samples.jsonl"));
}

// What is counted before is what the run then reads.
TEST_F(RunTest, ADryRunCountsThePromptTokens) {
  const auto dry = [&](const std::vector<std::string>& more) {
    const RunResult result = Run("counted", more, "3");
    EXPECT_EQ(result.exit.code, 0) << result.err;
    return nlohmann::json::parse(result.out);
  };
  const auto plan = dry({"--dry-run", "--json"});
  EXPECT_FALSE(std::filesystem::exists(Out("counted")));
  ASSERT_EQ(Run("counted", {"--quiet"}, "3").exit.code, 0);
  int64_t read = 0;
  std::istringstream lines(Read("counted", "samples.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const auto sample = nlohmann::json::parse(line);
    if (sample.at("sample") == 0) read += sample.at("prompt_tokens").get<int64_t>();
  }
  EXPECT_GT(read, 0);
  EXPECT_EQ(plan.at("prompt_tokens"), read);
  EXPECT_EQ(plan.at("estimated_tokens"), read + 2 * 3 * (1 + 5) * 48);
  EXPECT_EQ(plan.at("jobs").size(), 4u);
}

// A mistake in a data file is bad input, one in the entry itself is a mistake of the command line.
TEST_F(RunTest, BadRowsAreBadInputAndBadEntriesAreUsage) {
  const std::string file = Out("q.jsonl");
  ASSERT_TRUE(WriteFileAtomic(file, "{\"question\":\"q\",\"answer\":\"1\",\"choices\":[\"a\"]}\n[1]\n").ok());
  const auto run = [&](const std::string& bench) {
    return RunProgram({"iha-eval", "run", "--model", Model("alpha"), "--bench", bench, "--numerics", "fake", "--out",
                       Out("bad_rows")});
  };
  const RunResult jsonl = run("jsonl:" + file);
  EXPECT_EQ(jsonl.exit.code, 3) << jsonl.err;
  EXPECT_THAT(jsonl.err, HasSubstr("q.jsonl:2: found [1], expected a JSON object"));
  const RunResult choice = run("choice:" + file);
  EXPECT_EQ(choice.exit.code, 3) << choice.err;
  EXPECT_THAT(choice.err, HasSubstr("q.jsonl:1: field \"choices\": found 1 choices"));
  EXPECT_EQ(run("jsonl:" + file + "?metric=none").exit.code, 2);
  EXPECT_FALSE(std::filesystem::exists(Out("bad_rows"))) << "nothing is begun";
}

// Multiple choice: the same bytes whatever the batch, the workers and their deaths; explained, exported, not asked
// twice.
TEST_F(RunTest, ChoicesFromFileToTable) {
  std::string rows;
  for (int i = 0; i < 12; i++) {
    rows +=
        fmt::format(R"({{"id":"q{0}","question":"Question {0}: ","choices":["{0}","#### {1}","x y"],"answer":{2}}})", i,
                    i * i, i % 3) +
        "\n";
  }
  ASSERT_TRUE(WriteFileAtomic(Out("q.jsonl"), rows).ok());
  const auto run = [&](const std::string& out, const std::vector<std::string>& extra) {
    std::vector<std::string> argv = {
        "iha-eval", "run",       "--model", Model("alpha"), "--bench", "choice:" + Out("q.jsonl"), "--numerics",
        "fake",     "--threads", "1",       "--out",        Out(out)};
    argv.insert(argv.end(), extra.begin(), extra.end());
    return RunProgram(argv);
  };
  const RunResult one = run("one", {"--max-batch", "1"});
  ASSERT_EQ(one.exit.code, 0) << one.err;
  EXPECT_THAT(one.out, AllOf(HasSubstr(" acc |"), HasSubstr(" acc_norm |"), HasSubstr("12/12")));
  EXPECT_THAT(one.out, ::testing::Not(HasSubstr("length limit"))) << "no score is cut short";
  EXPECT_THAT(one.out, HasSubstr("&prompt={question} scored by log-likelihood ")) << "nor is anything said to be drawn";
  EXPECT_THAT(one.out, ::testing::Not(HasSubstr("max_new_tokens")));
  ASSERT_EQ(run("three", {"--workers", "3"}).exit.code, 0);
  const RunResult killed = run("killed", {"--workers", "2", "--worker-fault", "worker.sample.done:kill:5"});
  ASSERT_EQ(killed.exit.code, 0) << killed.err;
  ExpectSameResults("one", "three");
  ExpectSameResults("one", "killed");
  ExpectSound("killed");

  // The right choices counted here, from the numbers in samples.jsonl.
  int64_t right = 0, tokens = 0;
  std::istringstream lines(Read("one", "samples.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const auto sample = nlohmann::json::parse(line);
    std::vector<double> likelihoods;
    for (const auto& choice : sample.at("choices")) likelihoods.push_back(choice.at("loglikelihood"));
    ASSERT_EQ(likelihoods.size(), 3u);
    const auto best = std::max_element(likelihoods.begin(), likelihoods.end()) - likelihoods.begin();
    const int64_t is_right = best == sample.at("index").get<int64_t>() % 3 ? 1 : 0;
    EXPECT_EQ(sample.at("grades").at("acc").at("score"), is_right) << line;
    right += is_right;
    tokens += 3 * sample.at("prompt_tokens").get<int64_t>() + sample.at("tokens").get<int64_t>();
  }
  const auto table = nlohmann::json::parse(Read("one", "table.json"));
  EXPECT_EQ(table["rows"][0]["cells"][0]["value"], static_cast<double>(right) / 12);
  const auto plan = nlohmann::json::parse(run("dry", {"--dry-run", "--json"}).out);
  EXPECT_EQ(plan.at("prompt_tokens"), tokens) << "what is counted before is what is run";
  EXPECT_EQ(plan.at("estimated_tokens"), tokens);

  const std::string db = Out("one") + "/iha-eval.db";
  const std::string sweep = table.at("sweep");
  const RunResult story =
      RunProgram({"iha-eval", "explain", "--db", db, "--sweep", sweep, "--model", "alpha", "--item", "4", "--json"});
  ASSERT_EQ(story.exit.code, 0) << story.err;
  const auto told = nlohmann::json::parse(story.out);
  EXPECT_EQ(told.at("prompt"), "Question 4: ");
  EXPECT_EQ(told.at("choices"), (nlohmann::json{" 4", " #### 16", " x y"}));
  EXPECT_EQ(told.at("gold"), "#### 16");
  EXPECT_EQ(told.at("samples").at(0).at("choices").at(1).at("text"), " #### 16");
  EXPECT_TRUE(told.at("samples").at(0).at("choices").at(1).at("loglikelihood").is_number_float());
  EXPECT_EQ(told.at("samples").at(0).at("grades").at(0).at("group"), 0);
  const RunResult regraded = RunProgram({"iha-eval", "regrade", "--db", db, "--sweep", sweep, "--json"});
  ASSERT_EQ(regraded.exit.code, 0) << regraded.err;
  EXPECT_EQ(nlohmann::json::parse(regraded.out).at("changed"), 0);

  const RunResult sampled = run("sampled", {"--samples", "5"});
  EXPECT_EQ(sampled.exit.code, 2) << sampled.err;
  EXPECT_THAT(sampled.err, HasSubstr("samples 5, temperature 0; expected 1 and 0: its choices are scored"));
  ASSERT_TRUE(WriteFileAtomic(Out("q.jsonl"), rows + "{\"question\":\"q\"}\n").ok());
  const RunResult broken = run("broken", {});
  EXPECT_NE(broken.exit.code, 0);
  EXPECT_THAT(broken.err, HasSubstr("q.jsonl:13: field \"choices\": missing; expected an array of texts"));
}

TEST_F(RunTest, LogitsToStdoutAreThoseOfAFile) {
  const auto logits = [&](const std::string& out) {
    return RunProgram(
        {"iha-eval", "logits", "--model", Model("alpha"), "--numerics", "fake", "--ids", "-", "--out", out},
        "[5, 6, 7]");
  };
  ASSERT_EQ(logits(Out("l.safetensors")).exit.code, 0);
  const RunResult to_stdout = logits("-");
  EXPECT_EQ(to_stdout.exit.code, 0) << to_stdout.err;
  EXPECT_EQ(to_stdout.out, ReadFile(Out("l.safetensors")).value());
  EXPECT_FALSE(to_stdout.out.empty());
}

// Two days are two sweeps; the model is asked something else only where its chat template reads the date.
TEST_F(RunTest, TheSweepsTemplateDateReachesTheChatTemplate) {
  const auto run = [&](const std::string& model, const std::string& date) {
    std::ofstream(Out("sweep.json")) << fmt::format(
        R"({{"version": 1, "models": ["{}"], "template_date": "{}", "numerics": {{"backend": "fake"}}, "benchmarks": [
            {{"spec": "gsm8k_demo?prompt=chat&fewshot=0", "limit": 2, "max_new_tokens": 8}}]}})",
        model, date);
    const RunResult result = RunProgram({"iha-eval", "run", "--sweep", Out("sweep.json"), "--models-root",
                                         Out("models"), "--quiet", "--json", "--out", Out(model + date)});
    EXPECT_EQ(result.exit.code, 0) << result.err;
    return nlohmann::json::parse(result.out);
  };
  const auto generations = [&](const std::string& out) {
    std::vector<std::string> keys;
    std::istringstream lines(Read(out, "samples.jsonl"));
    for (std::string line; std::getline(lines, line);) keys.push_back(nlohmann::json::parse(line)["generation"]);
    return keys;
  };
  for (const bool reads_the_date : {true, false}) {
    const std::string model = reads_the_date ? "dated" : "undated";
    ASSERT_TRUE(model::MakeFakeCheckpoint(Model(model), {.style = model::FakeStyle::kWords}).ok());
    std::filesystem::remove(Model(model) + "/chat_template.jinja");
    std::ofstream(Model(model) + "/chat_template.jinja")
        << (reads_the_date ? "{{ strftime_now('%d %b %Y') }}" : "") << "{{ messages[0].content }}";
    const auto july = run(model, "2024-07-26");
    const auto august = run(model, "2024-08-01");
    EXPECT_NE(july.at("sweep"), august.at("sweep"));
    const auto prompts = [](const nlohmann::json& table) {
      return table.at("provenance").at("entries").at(0).at("prompt_digest").get<std::string>();
    };
    EXPECT_NE(prompts(july), prompts(august));
    const auto first = generations(model + "2024-07-26");
    EXPECT_EQ(first.size(), 2u);
    EXPECT_EQ(first != generations(model + "2024-08-01"), reads_the_date);
  }
}

// Longer than the fake model's context: counted, unscored with its reason, never cut.
TEST_F(RunTest, APromptLongerThanTheContextIsUnscoredByName) {
  ASSERT_TRUE(
      model::MakeFakeCheckpoint(Model("short"), {.context_tokens = 600, .style = model::FakeStyle::kWords}).ok());
  const RunResult run = RunProgram({"iha-eval", "run", "--model", Model("short"), "--bench", "gsm8k_demo", "--limit",
                                    "3", "--numerics", "fake", "--out", Out("short")});
  ASSERT_EQ(run.exit.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("3 of 3 items prompt_too_long"));
  const auto table = nlohmann::json::parse(Read("short", "table.json"));
  EXPECT_EQ(table["rows"][0]["cells"][0]["scored"], 0);
  EXPECT_EQ(table["rows"][0]["cells"][0]["unscored"]["prompt_too_long"], 3);
}

// The whole way, from the flag to the footer: a worker that has the module takes the job.
TEST_F(RunTest, NumericsTorchRunsThroughLibTorch) {
  IHA_REQUIRE_TORCH();
  IHA_REQUIRE_MODEL(model);
  const RunResult run =
      RunProgram({"iha-eval", "run", "--model", model, "--bench", "gsm8k_demo?fewshot=1&max_new_tokens=8", "--limit",
                  "1", "--numerics", "torch", "--out", Out("torch")});
  ASSERT_EQ(run.exit.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("numerics torch/1-torch2.11.0/weights=stored/act=f32/kv=f32 (sampled)"));
  EXPECT_THAT(run.out, HasSubstr("1/1"));
}

}  // namespace
}  // namespace iha
