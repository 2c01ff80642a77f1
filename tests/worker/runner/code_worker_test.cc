// Benchmarks of programs in a worker's life: where its machine can't judge them, they are left to others.
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "benchmarks/graders/graders.h"
#include "common/retry.h"
#include "coordinator/ingest/regrade.h"
#include "coordinator/store/snapshot_reader.h"
#include "reports/render.h"
#include "reports/table.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/runner/world.h"

namespace iha::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

benchmarks::CodeVerdict VerdictOf(const std::string& result) {
  benchmarks::CodeVerdict verdict;
  verdict.suspect = result == "suspect";
  verdict.official_passed = verdict.suspect || result == "passed";
  verdict.result = result;
  return verdict;
}

// Judges everything as passed, where it can.
class AnyJudge final : public benchmarks::CodeJudge {
 public:
  explicit AnyJudge(absl::Status ready) : ready_(std::move(ready)) {}
  absl::Status Ready() override { return ready_; }
  absl::StatusOr<benchmarks::CodeVerdict> Judge(const benchmarks::CodeTask&, const std::string&,
                                                benchmarks::CodeRule) override {
    return VerdictOf("passed");
  }
  int parallel() const override { return 1; }

 private:
  const absl::Status ready_;
};

// A machine whose sandbox does not hold: the sweep says which limit, its programs wait for another worker, the rest is
// done here.
TEST(CodeWorker, ProgramsAreLeftToWorkersThatCanJudgeThem) {
  IHA_REQUIRE_DATA(data);
  const testing::TempDir dir;
  MakeModel(dir.File("models/alpha"));
  World world(data);
  SweepSpec spec = DemoSweep("alpha");
  for (const char* name : {"humaneval", "mbpp"}) {
    spec.entries.insert(spec.entries.begin(), spec.entries.back());
    spec.entries.front().benchmark.name = name;
  }
  world.Submit(spec);
  CheckpointSource models(RootAt(dir.File("models")));
  const auto run = [&](const std::string& id, const absl::Status& ready) {
    WorkerOptions options = OptionsFor(id);
    options.data_root = data;
    options.graders =
        std::make_shared<benchmarks::Graders>(benchmarks::GraderOptions{.judge = std::make_shared<AnyJudge>(ready)});
    return Worker(*world.api, models, world.clock, std::move(options)).Run();
  };
  const absl::Status refused = run("open", absl::FailedPreconditionError("sandbox: the network did not hold"));
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.message()), AllOf(HasSubstr(kRunsNoPrograms), HasSubstr("the network")));
  const SweepProgress waits = world.Progress();
  EXPECT_EQ(waits.state, "running");
  for (const JobProgress& job : waits.jobs) {
    EXPECT_EQ(job.scored, job.entry.starts_with("gsm8k_demo") ? kItems : 0) << job.entry;
    EXPECT_EQ(job.unscored, 0) << job.entry;
  }
  EXPECT_THAT(fmt::format("{}", fmt::join(waits.notes, "\n")),
              AllOf(HasSubstr("worker open: humaneval: "), HasSubstr("worker open: mbpp: "), HasSubstr("the network")));
  EXPECT_THAT(coordinator::Charged(world.AttemptsOf("open")), IsEmpty());
  const absl::Status judged = run("closed", absl::OkStatus());
  EXPECT_TRUE(judged.ok()) << judged;
  EXPECT_EQ(world.Progress().state, "done");
  for (const JobProgress& job : world.Progress().jobs) EXPECT_EQ(job.scored, kItems) << job.entry;
}

// Always of the same result, or "lost" with the first judgement; each judgement waits until as many are being made at a
// time as it has places, or for a while.
class PlacesJudge final : public benchmarks::CodeJudge {
 public:
  PlacesJudge(int places, std::string result) : places_(places), result_(std::move(result)) {}
  absl::Status Ready() override { return ready; }
  absl::StatusOr<benchmarks::CodeVerdict> Judge(const benchmarks::CodeTask&, const std::string&,
                                                benchmarks::CodeRule) override {
    const absl::MutexLock lock(&mutex_);
    if (result_ == "lost") return ready = absl::UnavailableError("judge: its child was lost");
    most = std::max(most, ++now_);
    mutex_.AwaitWithTimeout(absl::Condition(
                                +[](PlacesJudge* judge) { return judge->most == judge->places_; }, this),
                            absl::Seconds(20));
    now_--;
    return VerdictOf(result_);
  }
  int parallel() const override { return places_; }

  int most = 0;  // at a time
  absl::Status ready;

 private:
  const int places_;
  const std::string result_;
  absl::Mutex mutex_;
  int now_ = 0;
};

// A greedy sweep of programs: one sample an item.
SweepSpec GreedyPrograms() {
  SweepSpec spec = DemoSweep("alpha");
  spec.entries[0].benchmark.name = "humaneval";
  spec.entries[0].sampling.samples = 1;
  spec.entries[0].sampling.temperature = 0;
  spec.shard_tokens = 1 << 20;
  return spec;
}

absl::Status RunGreedyPrograms(World& world, const std::string& models_root, const std::string& data,
                               const std::shared_ptr<benchmarks::CodeJudge>& judge) {
  world.Submit(GreedyPrograms());
  CheckpointSource models(RootAt(models_root));
  WorkerOptions options = OptionsFor("only");
  options.data_root = data;
  options.graders = std::make_shared<benchmarks::Graders>(benchmarks::GraderOptions{.judge = judge});
  return Worker(*world.api, models, world.clock, std::move(options)).Run();
}

TEST(CodeWorker, ItemsOfOneSampleAreJudgedSideBySide) {
  IHA_REQUIRE_DATA(data);
  const testing::TempDir dir;
  MakeModel(dir.File("models/alpha"));
  std::vector<std::vector<Digest>> rows;
  for (const int places : {1, static_cast<int>(kItems)}) {
    World world(data);
    const auto judge = std::make_shared<PlacesJudge>(places, "passed");
    const absl::Status run = RunGreedyPrograms(world, dir.File("models"), data, judge);
    ASSERT_TRUE(run.ok()) << run;
    EXPECT_EQ(judge->most, places);
    rows.push_back(world.ItemHashes());
    EXPECT_EQ(rows.back().size(), static_cast<size_t>(kItems));
  }
  EXPECT_EQ(rows[0], rows[1]) << "the rows depend on how many are judged at a time";
}

// Which of a sweep's samples only the official rule passes is told by name.
TEST(CodeWorker, SuspectsAreNamedInTheTable) {
  IHA_REQUIRE_DATA(data);
  const testing::TempDir dir;
  MakeModel(dir.File("models/alpha"));
  World world(data);
  ASSERT_TRUE(RunGreedyPrograms(world, dir.File("models"), data, std::make_shared<PlacesJudge>(1, "suspect")).ok());
  const auto snapshot = coordinator::ReadSnapshot(*world.store, world.sweep, "test");
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  const auto table = reports::BuildTable(*snapshot, {});
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->suspects.size(), static_cast<size_t>(kItems));
  EXPECT_EQ(table->suspects[2].item_id, "HumanEval/2");
  EXPECT_EQ(table->suspects[2].sample, 0);
  EXPECT_EQ(table->rows[0].cells[0].cell.value, scoring::Rational(0));
  EXPECT_THAT(table->notes,
              ::testing::Contains(HasSubstr("4 samples are suspects, which only the official rule passes: "
                                            "HumanEval/0 (sample 0), HumanEval/1 (sample 0)")));
  EXPECT_THAT(reports::RenderMarkdown(*table), HasSubstr("> note: alpha / humaneval"));
  EXPECT_THAT(reports::RenderJson(*table), HasSubstr("\"item_id\": \"HumanEval/3\""));
}

// Stored programs are run again; what differs lies beside the rows that were there. A judge that is lost leaves
// nothing.
TEST(CodeWorker, ProgramsAreGradedAgain) {
  IHA_REQUIRE_DATA(data);
  const testing::TempDir dir;
  MakeModel(dir.File("models/alpha"));
  World world(data);
  ASSERT_TRUE(RunGreedyPrograms(world, dir.File("models"), data, std::make_shared<PlacesJudge>(1, "passed")).ok());
  const std::vector<Digest> before = world.ItemHashes();
  const auto regrade = [&](const std::shared_ptr<PlacesJudge>& judge, int64_t* progress = nullptr) {
    coordinator::RegradeOptions options{.judge = judge.get()};
    if (progress != nullptr) {
      options.progress = [progress](const JobSpec&, int64_t done, int64_t items) {
        EXPECT_EQ(done, ++*progress);
        EXPECT_EQ(items, kItems);
      };
    }
    auto graders = std::make_shared<benchmarks::Graders>(benchmarks::GraderOptions{.judge = judge});
    return coordinator::RegradeSweep(*world.store, world.sweep, coordinator::OpenerFor(data, std::move(graders)),
                                     options);
  };
  const auto none = std::make_shared<PlacesJudge>(1, "failed: TypeError");
  none->ready = absl::UnavailableError("sandbox: the network did not hold");
  EXPECT_EQ(regrade(none).status(), none->ready);
  EXPECT_EQ(none->most, 0);
  const auto lost = std::make_shared<PlacesJudge>(1, "lost");
  EXPECT_EQ(regrade(lost).status(), absl::UnavailableError("judge: its child was lost"));
  const auto equal = regrade(std::make_shared<PlacesJudge>(1, "passed"));
  ASSERT_TRUE(equal.ok()) << equal.status();
  EXPECT_EQ(equal->at(0).after, "") << "nothing differs, and the lost judge wrote nothing";
  EXPECT_EQ(equal->at(0).items, kItems);

  int64_t progress = 0;
  const auto places = std::make_shared<PlacesJudge>(kItems, "failed: TypeError");
  const auto fails = regrade(places, &progress);
  ASSERT_TRUE(fails.ok()) << fails.status();
  EXPECT_EQ(progress, kItems);
  EXPECT_EQ(places->most, kItems);
  EXPECT_TRUE(fails->at(0).runs_code);
  EXPECT_EQ(fails->at(0).changed, kItems);
  EXPECT_EQ(fails->at(0).after, fails->at(0).before + "#2");
  EXPECT_EQ(fails->at(0).metrics.at(0).sum_before, scoring::Rational(kItems));
  EXPECT_EQ(fails->at(0).metrics.at(0).sum_after, scoring::Rational(0));
  EXPECT_EQ(world.ItemHashes(), before);
  const auto without = regrade(nullptr);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(without->at(0).items, 0);
  EXPECT_EQ(without->at(0).after, "");
}

}  // namespace
}  // namespace iha::worker
