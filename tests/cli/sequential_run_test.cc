// run --sequential-gate: a sweep that ends once its verdict is certain, whoever was faster, killed or run again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "common/file.h"
#include "tests/cli/two_models.h"
#include "tests/support/service.h"

namespace iha {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RunProgram;
using Json = nlohmann::json;

constexpr int kItems = 600;

class SequentialRun : public testing::TwoModels {
 protected:
  void SetUp() override {
    MakeModels();
    sweep_ = AskWhatAlphaSays(kItems);
    alpha_ = ExportBaseline("alpha", "alpha.json");
  }
  std::vector<std::string> Command(const std::string& model, const std::string& db,
                                   const std::vector<std::string>& more = {}, const std::string& margin = "10") const {
    std::vector<std::string> argv = RunOf({model}, "q", db, db + ".out");
    argv.insert(argv.end(), {"--sequential-gate", alpha_, "--margin", margin, "--json"});
    argv.insert(argv.end(), more.begin(), more.end());
    return argv;
  }
  RunResult Run(const std::string& model, const std::string& db, const std::vector<std::string>& more = {}) const {
    return RunProgram(Command(model, db, more));
  }
  // Whatever would show a mean of alpha's stopped run refuses it; what is known of an item is there.
  void ShowsItsVerdictAlone(const std::string& db, const std::string& sweep) const {
    const std::string run = sweep + "/alpha";
    const auto refuses = [&](std::vector<std::string> argv, const std::string& whose) {
      argv.insert(argv.begin(), "iha-eval");
      argv.insert(argv.end(), {"--db", Path(db)});
      Refuses(argv, 3, whose + " has an item_order: it may be stopped by what it shows");
    };
    refuses({"compare", run, run}, "A's sweep");
    refuses({"export", "--baseline", run, "--out", Path("no.json")}, "the baseline's sweep");
    refuses({"gate", "--sequential", "--candidate", run, "--baseline", run}, "the baseline's sweep");
    refuses({"export", "lm-eval", "--sweep", sweep, "--out", Path("no")}, "the sweep");
    const RunResult regraded = RunProgram({"iha-eval", "regrade", "--db", Path(db), "--sweep", sweep, "--json"});
    const Json metric = Json::parse(regraded.out, nullptr, false)["metrics"][0];
    EXPECT_TRUE(metric["mean_before"].is_null() && metric["mean_after"].is_null()) << regraded.out << regraded.err;
    EXPECT_GT(metric["scored_after"], 0);
    Json found;
    for (int i = 0; i < 60 && !found.contains("votes_settled"); i++) {
      found = Json::parse(RunProgram({"iha-eval", "explain", "--db", Path(db), "--sweep", sweep, "--model", "alpha",
                                      "--item", std::to_string(i), "--json"})
                              .out,
                          nullptr, false);
    }
    EXPECT_EQ(found["votes_settled"], (Json{{"by", 5}, {"of", 8}}));
    EXPECT_EQ(found["samples"].size(), 5u);
  }
  std::string alpha_;
};

TEST_F(SequentialRun, StopsWhatIsPlainlyWorseAndSaysWhatItSaved) {
  const RunResult worse = Run("beta", "seq.db");
  EXPECT_EQ(worse.exit.code, 5) << worse.err;
  const Json json = Json::parse(worse.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << worse.out;
  EXPECT_EQ(json["verdict"], "FAIL");
  EXPECT_LT(json["items_used"], 60);
  EXPECT_EQ(json["items_planned"], kItems);
  EXPECT_THAT(worse.err, HasSubstr("of the work not needed"));

  // The sweep was stopped, and shows nothing but its verdict.
  const std::string candidate = Json::parse(Read("seq.db.out/table.json"), nullptr, false).value("sweep", "") + "/beta";
  const RunResult list = RunProgram({"iha-eval", "list", "--db", Path("seq.db"), "--json"});
  const Json listed = Json::parse(list.out, nullptr, false);
  EXPECT_EQ(listed["state"], "cancelled") << list.out;
  EXPECT_LT(listed["finished"], kItems);
  EXPECT_THAT(Read("seq.db.out/table.md"),
              AllOf(HasSubstr("stopped early has no value here"), Not(HasSubstr("| 0.0"))));
  const auto gate = [&](const std::vector<std::string>& more) {
    std::vector<std::string> argv = {"iha-eval",   "gate", "--db",     Path("seq.db"), "--candidate", candidate,
                                     "--baseline", alpha_, "--margin", "10",           "--json"};
    argv.insert(argv.end(), more.begin(), more.end());
    return RunProgram(argv);
  };
  Refuses(gate({}), 3, "only the sequential verdict holds; give --sequential");
  EXPECT_EQ(gate({"--sequential"}).out, worse.out);

  // The same command again generates nothing and says the same; so does another number of workers.
  const RunResult again = Run("beta", "seq.db");
  EXPECT_EQ(again.exit.code, 5) << again.err;
  EXPECT_EQ(again.out, worse.out);
  EXPECT_EQ(Run("beta", "two.db", {"--workers", "2"}).out, worse.out);
}

TEST_F(SequentialRun, AnUnchangedCandidatePassesEarlyAlsoWhereItWasKilled) {
  const RunResult same = Run("alpha", "same.db");
  EXPECT_EQ(same.exit.code, 0) << same.err;
  const Json json = Json::parse(same.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << same.out;
  EXPECT_EQ(json["verdict"], "PASS");
  EXPECT_LT(json["items_used"], kItems);
  ASSERT_EQ(Run("alpha", "dead.db", {"--fault", "store.commit.after_insert:kill:5"}).exit.signal, SIGKILL);
  const RunResult resumed = Run("alpha", "dead.db");
  EXPECT_EQ(resumed.exit.code, 0) << resumed.err;
  EXPECT_EQ(resumed.out, same.out);
}

// A service's sweep says the order itself; the gate follows it over the coordinator's database and cancels the rest.
TEST_F(SequentialRun, TheGateFollowsASweepOfAService) {
  const std::string address = "unix:" + Path("c.sock");
  testing::Program coordinator({"iha-coordinator", "--listen", address, "--db", Path("c.db")}, Path("c.log"));
  ASSERT_TRUE(coordinator.AwaitLog("listening on"));
  const auto submit = [&](const std::string& order) {
    const std::string sweep = fmt::format(
        R"({{"version": 1, "models": ["beta"], "benchmarks": [{{"spec": "jsonl:{}", "max_new_tokens": 12}}],
            "numerics": {{"backend": "fake"}}{}}})",
        Path("q.jsonl"), order);
    EXPECT_TRUE(WriteFileAtomic(Path("sweep.json"), sweep).ok());
    const RunResult id = RunProgram({"iha-eval", "submit", "--coordinator", address, Path("sweep.json")});
    EXPECT_EQ(id.exit.code, 0) << id.err;
    return id.out.substr(0, 64);
  };
  const std::string ordered = submit(", \"item_order\": 1234"), plain = submit("");
  const auto gate = [&](const std::string& sweep, const std::vector<std::string>& more) {
    std::vector<std::string> argv = {"iha-eval",    "gate",          "--coordinator", address, "--db",     Path("c.db"),
                                     "--candidate", sweep + "/beta", "--baseline",    alpha_,  "--margin", "10"};
    argv.insert(argv.end(), more.begin(), more.end());
    return RunProgram(argv);
  };
  Refuses(gate(ordered, {}), 2, "--coordinator: needs --sequential");
  Refuses(gate(plain, {"--sequential"}), 3, "--baseline: the sweep has no item_order");
  testing::Program worker({"iha-worker", "--coordinator", address, "--models-root", dir_.path(), "--threads", "1",
                           "--kv-memory-mib", "64", "--deadline", "20"},
                          Path("w.log"));
  const RunResult verdict = gate(ordered, {"--sequential", "--json"});
  EXPECT_EQ(verdict.exit.code, 5) << verdict.err;
  EXPECT_EQ(verdict.out, Run("beta", "seq.db").out);
  EXPECT_TRUE(coordinator.AwaitLog("sweep " + ordered.substr(0, 16) + ": cancelled, 1 unfinished jobs"));
}

// Votes of a sequential gate stop, too: what all samples would say, from fewer; where a mean is asked for, all are
// drawn.
TEST_F(SequentialRun, VotesStopOnceTheyAreSettled) {
  const auto run = [&](const std::string& db, const std::vector<std::string>& more) {
    std::vector<std::string> argv = RunOf({"alpha"}, "q", db, db + ".out");
    argv.insert(argv.end(), {"--samples", "8", "--limit", "60"});
    argv.insert(argv.end(), more.begin(), more.end());
    return RunProgram(argv);
  };
  const auto sweep_of = [&](const std::string& db) {
    return Json::parse(Read(db + ".out/table.json"), nullptr, false).value("sweep", "");
  };
  ASSERT_EQ(run("votes.db", {"--metric", "maj@8", "--metric", "exact"}).exit.code, 0);
  const RunResult bundle = RunProgram({"iha-eval", "export", "--baseline", sweep_of("votes.db") + "/alpha", "--db",
                                       Path("votes.db"), "--out", Path("votes.json")});
  ASSERT_EQ(bundle.exit.code, 0) << bundle.err;
  const std::vector<std::string> gate = {
      "--sequential-gate", Path("votes.json"), "--margin", "40", "--json", "--metric", "maj@8"};
  std::vector<std::string> votes = gate, means = gate;
  votes.insert(votes.end(), {"--metrics", "maj@8?metric=exact"});
  means.insert(means.end(), {"--metric", "exact"});
  const RunResult stopped = run("stopped.db", votes);
  EXPECT_EQ(stopped.exit.code, 0) << stopped.err;
  const Json json = Json::parse(stopped.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << stopped.out;
  const int64_t used = json["items_used"];
  EXPECT_EQ(json["vote_samples_planned"], 8 * used);
  EXPECT_EQ(json["vote_samples"], 5 * used) << "greedy samples are all alike";
  EXPECT_THAT(stopped.err, HasSubstr(fmt::format("their votes were settled by {} of {} samples", 5 * used, 8 * used)));
  EXPECT_THAT(Read("stopped.db.out/table.md"), HasSubstr("stop_settled_votes"));
  EXPECT_THAT(Read("stopped.db.out/table.md"), HasSubstr("samples end once its votes are settled, after 8 at most"));
  EXPECT_EQ(RunProgram({"iha-eval", "fsck", "--db", Path("stopped.db")}).exit.code, 0);
  ShowsItsVerdictAlone("stopped.db", sweep_of("stopped.db"));
  const RunResult all = run("means.db", means);
  EXPECT_EQ(all.exit.code, 0) << all.err;
  EXPECT_EQ(Json::parse(all.out, nullptr, false)["vote_samples_planned"], 0);
}

TEST_F(SequentialRun, RefusesBeforeAnythingIsStored) {
  Refuses(Run("alpha", "no.db", {"--limit", "500"}), 3, "items: candidate 500, baseline 600");
  Refuses(Run("alpha", "no.db", {"--model", Path("beta")}), 3, "--sequential-gate: 2 models; expected one");
  Refuses(Run("alpha", "no.db", {"--metrics", "exakt"}), 3, "unknown metric \"exakt\"");
  Refuses(RunProgram(Command("alpha", "no.db", {}, "0")), 2, "--margin: found \"0\"");
  const RunResult list = RunProgram({"iha-eval", "list", "--db", Path("no.db"), "--json"});
  EXPECT_EQ(list.out, "") << list.err;
  std::vector<std::string> argv = Command("alpha", "no.db");
  *std::find(argv.begin(), argv.end(), alpha_) = "absent.json";
  Refuses(RunProgram(argv), 3, "--sequential-gate (no file of that name): found \"absent.json\"");
  // What only a gate needs is no flag of a run without one.
  Refuses(RunProgram({"iha-eval", "run", "--model", Path("alpha"), "--bench", "gsm8k_demo", "--alpha", "0.1"}), 2,
          "--alpha requires --sequential-gate");
}

}  // namespace
}  // namespace iha
