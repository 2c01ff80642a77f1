// The service as its users meet it: coordinator, workers and clients as processes, over a Unix socket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "model/fake_model.h"
#include "tests/support/service.h"
#include "tests/support/temp_dir.h"

namespace iha {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Program;
using testing::RunProgram;

class ServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"alpha", "beta"}) {
      const model::FakeOptions options{.seed = name[0] == 'a' ? 1u : 2u, .style = model::FakeStyle::kWords};
      ASSERT_TRUE(model::MakeFakeCheckpoint(dir_.File(std::string("models/") + name), options).ok());
    }
  }
  std::string Path(const std::string& name) const { return dir_.File(name); }
  void Write(const std::string& name, const std::string& text) const { std::ofstream(Path(name)) << text; }
  std::string Address() const { return "unix:" + Path("c.sock"); }
  // A sweep of one model over the demo set; prints its id.
  std::string Submit(const std::string& model, int samples = 1) const {
    const std::string file = model + std::to_string(samples) + ".json";
    Write(file, fmt::format(R"({{"version": 1, "models": ["{}"], "benchmarks": [{{"spec": "gsm8k_demo", "samples": {},
        "temperature": 0.8, "max_new_tokens": 32}}], "numerics": {{"backend": "fake"}}, "shard_tokens": 1}})",
                            model, samples));
    const RunResult result = RunProgram({"iha-eval", "submit", "--coordinator", Address(), Path(file)});
    EXPECT_EQ(result.exit.code, 0) << result.err;
    return result.out.substr(0, result.out.find('\n'));
  }
  std::vector<std::string> WorkerArgs(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> argv = {"iha-worker",   "--coordinator", Address(), "--models-root",
                                     Path("models"), "--threads",     "1",       "--kv-memory-mib",
                                     "64",           "--deadline",    "20"};
    argv.insert(argv.end(), more.begin(), more.end());
    return argv;
  }
  std::vector<std::string> CoordinatorArgs(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> argv = {"iha-coordinator", "--listen", Address(), "--db", Path("c.db")};
    argv.insert(argv.end(), more.begin(), more.end());
    return argv;
  }
  RunResult Client(std::vector<std::string> argv, const std::vector<std::string>& more = {}) const {
    argv.insert(argv.begin(), "iha-eval");
    argv.insert(argv.end(), {"--coordinator", Address(), "--deadline", "20"});
    argv.insert(argv.end(), more.begin(), more.end());
    return RunProgram(argv);
  }
  std::string StateOf(const std::string& sweep) const {
    const RunResult status = Client({"status", sweep, "--json"});
    EXPECT_EQ(status.exit.code, 0) << status.err;
    const auto json = nlohmann::json::parse(status.out, nullptr, false);
    return json.is_object() ? json.value("state", "") : "";
  }

  testing::TempDir dir_;
};

TEST_F(ServiceTest, TheCoordinatorsLogSaysWhatHappens) {
  Program coordinator(CoordinatorArgs(), Path("c.log"));
  ASSERT_TRUE(coordinator.AwaitLog("listening on"));
  const std::string sweep = Submit("alpha");
  EXPECT_TRUE(coordinator.AwaitLog("sweep " + sweep.substr(0, 16) + ": submitted: 1 model x 1 entry, 24 items"));
  const RunResult worker = RunProgram(WorkerArgs({"--id", "one", "--exit-when-done"}));
  EXPECT_EQ(worker.exit.code, 0) << worker.err;
  EXPECT_TRUE(coordinator.AwaitLog("worker one: joined: "));
  EXPECT_TRUE(coordinator.AwaitLog("sweep " + sweep.substr(0, 16) + ": all jobs have ended"));
  EXPECT_THAT(Client({"table", "--sweep", sweep, "--format", "latex"}).out, HasSubstr("\\toprule"));
  EXPECT_THAT(Client({"table", "--sweep", sweep, "--format", "html"}).out, HasSubstr("<table id=\"scores\">"));
  const std::string other = Submit("beta");
  EXPECT_EQ(Client({"cancel", other}).exit.code, 0);
  EXPECT_TRUE(coordinator.AwaitLog("sweep " + other.substr(0, 16) + ": cancelled, 1 unfinished jobs"));
}

TEST_F(ServiceTest, TwoSweepsAtOnceGetTheTablesThatEachGetsAlone) {
  Program coordinator(CoordinatorArgs(), Path("c.log"));
  ASSERT_TRUE(coordinator.AwaitLog("listening on"));
  const std::string a = Submit("alpha", 2);
  const std::string b = Submit("beta", 2);
  ASSERT_NE(a, b);
  EXPECT_EQ(Submit("alpha", 2), a) << "submitted twice, it is one sweep";
  Program one(WorkerArgs({"--id", "one", "--exit-when-done"}), Path("one.log"));
  Program two(WorkerArgs({"--id", "two", "--exit-when-done"}), Path("two.log"));
  for (const std::string& sweep : {a, b}) {
    const RunResult watched = Client({"watch", sweep});
    EXPECT_EQ(watched.exit.code, 0) << watched.err;
    EXPECT_EQ(StateOf(sweep), "done");
  }
  for (const auto& [model, sweep] : {std::pair{"alpha", a}, std::pair{"beta", b}}) {
    const RunResult run =
        RunProgram({"iha-eval", "run", "--sweep", Path(fmt::format("{}2.json", model)), "--models-root", Path("models"),
                    "--out", Path(fmt::format("run-{}", model)), "--json", "--quiet", "--threads", "1"});
    ASSERT_EQ(run.exit.code, 0) << run.err;
    const RunResult table = Client({"table", "--sweep", sweep, "--format", "json"});
    EXPECT_EQ(table.out, run.out);
  }
  for (Program* worker : {&one, &two}) {
    const auto exit = worker->child().Wait(absl::Seconds(60));
    ASSERT_TRUE(exit.has_value());
    EXPECT_TRUE(exit->ok()) << exit->ToString() << worker->Log();
  }
}

TEST_F(ServiceTest, CancelEndsASweepAndKeepsWhatIsScored) {
  Program coordinator(CoordinatorArgs(), Path("c.log"));
  ASSERT_TRUE(coordinator.AwaitLog("listening on"));
  const std::string a = Submit("alpha", 3);
  const std::string b = Submit("beta", 3);
  // Stopped with an item done: the sweep is surely neither untouched nor finished.
  Program worker(WorkerArgs({"--id", "w", "--fault", "worker.outbox.between_put_and_commit:stop:2"}), Path("w.log"));
  const absl::Time limit = absl::Now() + absl::Seconds(60);
  while (!testing::IsStopped(worker.child().pid()) && absl::Now() < limit) absl::SleepFor(absl::Milliseconds(10));
  ASSERT_TRUE(testing::IsStopped(worker.child().pid()));
  EXPECT_EQ(Client({"cancel", a}).exit.code, 0);
  EXPECT_EQ(Client({"cancel", a}).exit.code, 0) << "twice is once";
  EXPECT_EQ(StateOf(a), "cancelled");
  worker.child().Kill(SIGCONT);
  // The worker's late commit is refused, its lease dropped; it goes on with the other sweep.
  EXPECT_EQ(Client({"watch", b}).exit.code, 0);
  EXPECT_EQ(StateOf(b), "done");
  EXPECT_EQ(StateOf(a), "cancelled");
  const RunResult table = Client({"table", "--sweep", a, "--format", "md"});
  EXPECT_THAT(table.out, AllOf(HasSubstr("cancelled"), HasSubstr("/24")));
  EXPECT_THAT(table.out, Not(HasSubstr("24/24")));
  worker.child().Kill(SIGTERM);
  const auto exit = worker.child().Wait(absl::Seconds(60));
  ASSERT_TRUE(exit.has_value());
  EXPECT_TRUE(exit->ok()) << exit->ToString() << worker.Log();
  coordinator.child().Kill(SIGTERM);
  ASSERT_TRUE(coordinator.child().Wait(absl::Seconds(60)).has_value());
  const RunResult fsck = RunProgram({"iha-eval", "fsck", "--db", Path("c.db")});
  EXPECT_EQ(fsck.exit.code, 0) << fsck.out << fsck.err;
}

TEST_F(ServiceTest, CancelOfADoneSweepSaysThatNothingIsLeftToCancel) {
  Program coordinator(CoordinatorArgs(), Path("c.log"));
  ASSERT_TRUE(coordinator.AwaitLog("listening on"));
  const std::string sweep = Submit("alpha");
  EXPECT_EQ(RunProgram(WorkerArgs({"--exit-when-done"})).exit.code, 0);
  EXPECT_EQ(StateOf(sweep), "done");
  const RunResult text = Client({"cancel", sweep});
  EXPECT_EQ(text.exit.code, 0) << text.err;
  EXPECT_EQ(text.out, sweep + ": already done; nothing to cancel\n");
  EXPECT_THAT(Client({"cancel", sweep, "--json"}).out, HasSubstr(R"("cancelled":false)"));
  EXPECT_EQ(StateOf(sweep), "done");
  EXPECT_THAT(Client({"list"}).out, Not(HasSubstr(" \n")));
}

// The file that is missing is missing there, whatever lies here.
TEST_F(ServiceTest, DataThatTheCoordinatorLacksIsMissingOnTheCoordinator) {
  Program coordinator(CoordinatorArgs({"--data-root", Path("none")}), Path("c.log"));
  ASSERT_TRUE(coordinator.AwaitLog("listening on"));
  Write("s.json", R"({"version": 1, "models": ["alpha"], "benchmarks": [{"spec": "gsm8k"}],
                      "numerics": {"backend": "fake"}})");
  const RunResult result = Client({"submit", Path("s.json")});
  EXPECT_EQ(result.exit.code, 3);
  EXPECT_THAT(result.err, AllOf(HasSubstr("on the coordinator: "), HasSubstr(Path("none"))));
  Write("s.json",
        R"({"version": 1, "models": ["alpha"], "benchmarks": ["gsm8k_dem"], "numerics": {"backend": "fake"}})");
  const RunResult unknown = Client({"submit", Path("s.json")});
  EXPECT_EQ(unknown.exit.code, 3);
  EXPECT_THAT(unknown.err, HasSubstr("benchmarks[0]: unknown benchmark \"gsm8k_dem\" (did you mean \"gsm8k_demo\"?)"));
}

TEST_F(ServiceTest, AMissingAndAWrongTokenAreToldApart) {
  Write("right", "secret\n");
  Write("wrong", "guess\n");
  Program coordinator(CoordinatorArgs({"--token-file", Path("right")}), Path("c.log"));
  ASSERT_TRUE(coordinator.AwaitLog("listening on"));
  EXPECT_EQ(Client({"list"}, {"--token-file", Path("right")}).exit.code, 0);
  const std::pair<std::vector<std::string>, const char*> rows[] = {
      {{}, "this coordinator needs a token; pass --token-file"},
      {{"--token-file", Path("wrong")}, "token refused: it is not this coordinator's"},
  };
  for (const auto& [flags, message] : rows) {
    for (const bool worker : {false, true}) {
      const RunResult result = worker ? RunProgram(WorkerArgs(flags)) : Client({"list"}, flags);
      EXPECT_EQ(result.exit.code, 3) << result.err;
      EXPECT_THAT(result.err, HasSubstr(message));
      EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    }
  }
}

// A run that has the database keeps it; another one is told so at once, in one line.
TEST_F(ServiceTest, TwoRunsOnOneDatabaseAreOneTooMany) {
  const std::vector<std::string> run = {
      "iha-eval", "run",        "--model", Path("models/alpha"), "--bench", "gsm8k_demo", "--max-new-tokens",
      "16",       "--numerics", "fake",    "--threads",          "1",       "--db",       Path("shared.db"),
      "--out"};
  std::vector<std::string> first_args = run;
  first_args.insert(first_args.end(), {Path("first"), "--worker-fault", "worker.lease.start:stop"});
  Program first(first_args, Path("first.log"));
  ASSERT_TRUE(first.AwaitLog("items done"));
  std::vector<std::string> second_args = run;
  second_args.insert(second_args.end(), {Path("second"), "--quiet"});
  const RunResult second = RunProgram(second_args);
  EXPECT_EQ(second.exit.code, 3) << second.err;
  EXPECT_THAT(second.err, HasSubstr("shared.db: another coordinator has this database open; stop it"));
  EXPECT_EQ(std::count(second.err.begin(), second.err.end(), '\n'), 1) << second.err;
  // Killed, the first leaves nothing that stops the second.
  first.child().Kill(SIGKILL);
  ASSERT_TRUE(first.child().Wait(absl::Seconds(60)).has_value());
  EXPECT_EQ(RunProgram(second_args).exit.code, 0);
}

// A run that is killed leaves its socket's folder behind until the next run.
TEST_F(ServiceTest, SocketFoldersOfKilledRunsDoNotStay) {
  const auto folders = [] {
    int64_t count = 0;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/tmp", error)) {
      if (entry.path().filename().string().starts_with("iha-eval-run-")) count++;
    }
    return count;
  };
  std::vector<std::string> run = {"iha-eval",
                                  "run",
                                  "--model",
                                  Path("models/alpha"),
                                  "--bench",
                                  "gsm8k_demo",
                                  "--limit",
                                  "2",
                                  "--max-new-tokens",
                                  "8",
                                  "--numerics",
                                  "fake",
                                  "--threads",
                                  "1",
                                  "--quiet",
                                  "--out",
                                  Path("killed"),
                                  "--fault",
                                  "store.commit.after_insert:kill:1"};
  const int64_t before = folders();
  for (int i = 0; i < 3; i++) {
    run[run.size() - 3] = Path("killed" + std::to_string(i));
    EXPECT_EQ(RunProgram(run).exit.signal, SIGKILL);
  }
  run.resize(run.size() - 2);
  EXPECT_EQ(RunProgram(run).exit.code, 0);
  // Other tests run beside this one: theirs may live or have died since, but not three more.
  EXPECT_LT(folders(), before + 3);
}

}  // namespace
}  // namespace iha
