// A worker's life in one process, against the real coordinator over a database in memory: the sweep is finished, what
// cannot be served ends the worker by name, a drain hands its work to the next worker without a charge.
#include "worker/runner/worker.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "benchmarks/scoring/choice_scores.h"
#include "common/file.h"
#include "coordinator/coordinator.h"
#include "coordinator/service/service.h"
#include "coordinator/store/sqlite_store.h"
#include "model/fake_model.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/runner/observed.h"
#include "tests/worker/runner/world.h"
#include "worker/runner/checkpoint_source.h"

namespace iha::worker {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TempDir;

class WorkerTest : public ::testing::Test {
 protected:
  void SetUp() override { MakeModel(dir_.File("models/alpha")); }
  absl::Status RunWorker(World& world, const std::string& id) {
    CheckpointSource models(RootAt(dir_.File("models")));
    Worker worker(*world.api, models, world.clock, OptionsFor(id));
    return worker.Run();
  }
  TempDir dir_;
};

TEST_F(WorkerTest, FinishesTheSweepAndEnds) {
  World world;
  world.Submit("alpha");
  const absl::Status status = RunWorker(world, "w");
  EXPECT_TRUE(status.ok()) << status;
  const SweepProgress progress = world.Progress();
  EXPECT_EQ(progress.state, "done");
  ASSERT_EQ(progress.jobs.size(), 1);
  EXPECT_EQ(progress.jobs[0].scored, kItems);
  EXPECT_EQ(progress.jobs[0].unscored, 0);
  EXPECT_EQ(world.ItemHashes().size(), kItems);
  EXPECT_EQ(world.LeasedShards(), 0);
}

TEST_F(WorkerTest, TelemetryOfTheJobIsWhatTheEngineDid) {
  World world;
  world.Submit("alpha");
  ASSERT_TRUE(RunWorker(world, "w").ok());
  int64_t drawn = 0, prompts = 0;
  std::vector<coordinator::TelemetryRecord> records;
  const absl::Status read = world.store->Read([&](coordinator::ReadTxn& txn) -> absl::Status {
    const auto jobs = txn.Jobs(world.sweep);
    if (!jobs.ok()) return jobs.status();
    auto found = txn.Telemetry(jobs->at(0).id);
    if (found.ok()) records = *std::move(found);
    for (int64_t index = 0; index < kItems; index++) {
      const auto item = txn.LoadItem(jobs->at(0).id, index);
      for (const SampleResult& sample : (*item)->samples) {
        const Generation generation = (*txn.FindGeneration(sample.generation))->generation;
        drawn += static_cast<int64_t>(generation.tokens.size());
        prompts += generation.prompt_tokens;
      }
    }
    return found.status();
  });
  ASSERT_TRUE(read.ok()) << read;
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].worker.value, "w");
  EXPECT_EQ(records[0].telemetry.incarnation, 1);
  const EngineTelemetry& t = records[0].telemetry.engine;
  EXPECT_EQ(t.generated_tokens, drawn) << "with the last commit all is reported";
  EXPECT_EQ(t.prompt_tokens, prompts);
  EXPECT_EQ(t.prefill_tokens + t.reused_tokens, prompts) << "no preemption: each position is computed or taken over";
  EXPECT_EQ(t.preemptions, 0);
  EXPECT_GE(t.step_sequences, t.steps);
  EXPECT_GT(t.kv_blocks_peak, 0);
}

TEST(TelemetryLedger, SharesOutWhatOneEngineDid) {
  TelemetryLedger ledger(7);
  const JobId a{Sha256Of("a")}, b{Sha256Of("b")};
  EngineTelemetry total;
  total.generated_tokens = 10;
  total.kv_blocks_peak = 4;
  total.operations = {{.name = "mlp", .calls = 3, .time = absl::Seconds(2), .flops = 6, .bytes = 1}};
  JobTelemetry report = ledger.Account(a, total);
  EXPECT_EQ(report, (JobTelemetry{.incarnation = 7, .sequence = 1, .engine = total}));
  total.generated_tokens = 25;
  total.operations[0].flops = 7;
  report = ledger.Account(b, total);
  EXPECT_EQ(report.sequence, 2);
  EXPECT_EQ(report.engine.generated_tokens, 15);
  EXPECT_EQ(report.engine.operations.at(0).flops, 1);
  report = ledger.Account(a, total);
  EXPECT_EQ(report.engine.generated_tokens, 10) << "nothing was done since";
  // The next engine counts from zero.
  ledger.StartEngine();
  total = {};
  total.generated_tokens = 3;
  report = ledger.Account(a, total);
  EXPECT_EQ(report.sequence, 4);
  EXPECT_EQ(report.engine.generated_tokens, 13);
  EXPECT_EQ(report.engine.operations.at(0).calls, 3);
}

TEST_F(WorkerTest, AnAbsentModelEndsItByName) {
  World world;
  world.Submit("gone");
  const absl::Status status = RunWorker(world, "w");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("gone: no such folder"));
  EXPECT_THAT(world.AttemptsOf("w"), IsEmpty());
}

TEST_F(WorkerTest, ACacheThatIsTooSmallForAnItemIsSaidAndCostsTheItemsNothing) {
  World world;
  world.Submit("alpha");
  CheckpointSource models(RootAt(dir_.File("models")));
  for (const int64_t bytes : {int64_t{1}, model::FakeModel({}).info().kv_block_bytes}) {
    WorkerOptions options = OptionsFor(fmt::format("with{}", bytes));
    options.engine.kv_bytes = bytes;
    Observed api(*world.api, [](int) {});
    EXPECT_THAT(Worker(api, models, world.clock, options).Run().ToString(),
                HasSubstr(bytes == 1 ? "alpha: KV cache: a block of" : "the budget has 1; raise --kv-memory-mib"));
    EXPECT_THAT(api.releases, ::testing::ElementsAre(ReleaseReason::kDrain));
  }
  EXPECT_TRUE(RunWorker(world, "large").ok() && world.Progress().jobs[0].scored == kItems);
}

// `patience` zero: what is begun is given back; else it is finished first.
TEST_F(WorkerTest, StopReleasesUnchargedAndAnotherWorkerFinishesToTheSameItems) {
  World calm;
  calm.Submit("alpha");
  ASSERT_TRUE(RunWorker(calm, "w").ok());

  for (const absl::Duration patience : {absl::ZeroDuration(), absl::Seconds(20)}) {
    SCOPED_TRACE(absl::FormatDuration(patience));
    World world;
    world.Submit("alpha");
    CheckpointSource models(RootAt(dir_.File("models")));
    WorkerOptions options = OptionsFor("stopped");
    options.drain = patience;
    // Told to stop with its second lease granted and not begun.
    std::function<void()> stop;
    Observed api(*world.api, [&](int grants) {
      if (grants == 2) stop();
    });
    Worker worker(api, models, world.clock, options);
    stop = [&] {
      // Else a fast engine might leave nothing to release.
      api.refuse_commits.store(patience == absl::ZeroDuration());
      worker.Stop();
    };
    const absl::Status status = worker.Run();
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(world.LeasedShards(), 0);
    const auto attempts = world.AttemptsOf("stopped");
    EXPECT_THAT(coordinator::Charged(attempts), IsEmpty());
    EXPECT_NE(world.Progress().state, "done");
    const size_t kept = world.ItemHashes().size();
    if (patience == absl::ZeroDuration()) {
      EXPECT_THAT(api.releases, ::testing::Contains(ReleaseReason::kDrain));
      EXPECT_THAT(api.releases, ::testing::Not(::testing::Contains(ReleaseReason::kFailed)));
    } else {
      EXPECT_THAT(api.releases, IsEmpty());
      EXPECT_EQ(kept, 2) << "both begun items were finished";
    }
    EXPECT_LT(kept, static_cast<size_t>(kItems));

    const absl::Status finished = RunWorker(world, "next");
    EXPECT_TRUE(finished.ok()) << finished;
    EXPECT_EQ(world.Progress().state, "done");
    EXPECT_EQ(world.ItemHashes(), calm.ItemHashes());
  }
}

// A sweep with an item_order has leases of one item: a worker that may hold many takes them all before it waits.
TEST_F(WorkerTest, ManySmallLeasesFillTheBatchAtOnce) {
  World world;
  SweepSpec spec = DemoSweep("alpha");
  constexpr int kMany = 20;
  spec.entries[0].limit = kMany;
  spec.entries[0].sampling.samples = 1;
  world.Submit(spec);
  CheckpointSource models(RootAt(dir_.File("models")));
  WorkerOptions options = OptionsFor("w");
  options.max_leases = 64;
  int64_t most = 0;
  Observed api(*world.api, [&](int) { most = std::max(most, world.LeasedShards()); });
  Worker worker(api, models, world.clock, options);
  const absl::Status status = worker.Run();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(most, kMany);
  EXPECT_EQ(world.Progress().jobs[0].scored, kMany);
}

// More samples begun than the event queue holds: their results, of which nobody takes one, must not keep the engine.
TEST_F(WorkerTest, AStopWithManySamplesBegunEnds) {
  World world;
  SweepSpec spec = DemoSweep("alpha");
  spec.entries[0].limit = 17;
  spec.entries[0].sampling.samples = 4096;  // 69,632 in one shard
  spec.entries[0].sampling.max_new_tokens = 1;
  spec.shard_tokens = 1 << 30;
  world.Submit(spec);
  CheckpointSource models(RootAt(dir_.File("models")));
  WorkerOptions options = OptionsFor("w");
  options.drain = absl::ZeroDuration();
  std::function<void()> stop;
  Observed api(*world.api, [&](int) { stop(); });
  Worker worker(api, models, world.clock, options);
  stop = [&] { worker.Stop(); };
  const absl::Status status = worker.Run();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(api.releases, ::testing::ElementsAre(ReleaseReason::kDrain));
}

// First write wins: the worker's own text differs from the stored one, and its grades are of the stored one.
TEST_F(WorkerTest, ATextThatIsStoredOtherwiseIsGradedAsStored) {
  World world;
  world.Submit("alpha");
  CheckpointSource models(RootAt(dir_.File("models")));
  Observed api(*world.api, [](int) {});
  api.earlier_text = [](const Generation&) { return "The answer is 7.\n#### 7"; };
  Worker worker(api, models, world.clock, OptionsFor("w"));
  const absl::Status status = worker.Run();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(world.Progress().state, "done");
  EXPECT_THAT(api.releases, IsEmpty());
  EXPECT_THAT(coordinator::Charged(world.AttemptsOf("w")), IsEmpty());
  const absl::Status read = world.store->Read([&](coordinator::ReadTxn& txn) -> absl::Status {
    const auto jobs = txn.Jobs(world.sweep);
    if (!jobs.ok()) return jobs.status();
    for (int64_t index = 0; index < kItems; index++) {
      const auto item = txn.LoadItem(jobs->at(0).id, index);
      if (!item.ok()) return item.status();
      for (const SampleResult& sample : item->value().samples) EXPECT_EQ(sample.grades.at(0).extracted, "7");
    }
    const auto divergences = txn.Divergences();
    EXPECT_EQ(divergences.value().size(), static_cast<size_t>(2 * kItems)) << "each sample is said to differ";
    return absl::OkStatus();
  });
  EXPECT_TRUE(read.ok()) << read;
}

// What an engine of its own says about one choice; the fake checkpoint's ids are bytes.
scoring::ChoiceScore ScoreAlone(const std::string& folder, const std::string& context, const std::string& choice) {
  engine::EngineOptions options;
  options.kv_bytes = 1 << 20;
  auto engine = engine::Engine::Create(*model::FakeModel::Load(folder), nullptr, options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  engine::GenerationRequest request;
  request.prompt.assign(context.begin(), context.end());
  request.continuation.assign(choice.begin(), choice.end());
  EXPECT_TRUE((*engine)->Submit(request).ok());
  while (*(*engine)->Step()) {
  }
  const engine::GenerationResult result = (*engine)->TryPopResult().value();
  scoring::ChoiceScore score{result.sum_logprob, static_cast<int32_t>(choice.size()), true};
  for (const engine::TokenScore& token : result.scores) score.greedy = score.greedy && token.greedy;
  return score;
}

TEST_F(WorkerTest, ScoresEachChoiceOnceAndForAllSweeps) {
  const std::vector<std::string> questions = {"Sky?", "Two and two", "x", "####"};
  const std::vector<std::string> choices = {"blue", "a 12", "yes"};
  std::string rows;
  for (const std::string& question : questions) {
    rows +=
        fmt::format(R"({{"question":"{}","choices":["{}"],"answer":1}})", question, fmt::join(choices, "\",\"")) + "\n";
  }
  ASSERT_TRUE(WriteFileAtomic(dir_.File("q.jsonl"), rows).ok());
  SweepSpec spec = DemoSweep("alpha");
  spec.entries = {{.benchmark = {.name = "choice:" + dir_.File("q.jsonl"), .options = {}},
                   .sampling = {},
                   .limit = std::nullopt,
                   .metrics = {}}};
  spec.shard_tokens = 1000;  // several items a lease
  World world;
  CheckpointSource models(RootAt(dir_.File("models")));
  const auto run = [&](const std::string& worker_id) {
    world.Submit(spec);
    Observed api(*world.api, [](int) {});
    const absl::Status status = Worker(api, models, world.clock, OptionsFor(worker_id)).Run();
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(world.Progress().state, "done");
    return api.put.load();
  };
  EXPECT_EQ(run("w"), kItems) << "one for all choices of an item";
  const std::vector<Digest> hashes = world.ItemHashes();
  ASSERT_EQ(hashes.size(), static_cast<size_t>(kItems));
  const absl::Status read = world.store->Read([&](coordinator::ReadTxn& txn) -> absl::Status {
    const auto jobs = txn.Jobs(world.sweep);
    if (!jobs.ok()) return jobs.status();
    for (int64_t index = 0; index < kItems; index++) {
      const auto item = txn.LoadItem(jobs->at(0).id, index);
      const Generation stored = (*txn.FindGeneration((*item)->samples.at(0).generation))->generation;
      std::vector<scoring::ChoiceScore> expected;
      for (const std::string& choice : choices) {
        expected.push_back(ScoreAlone(dir_.File("models/alpha"), questions[static_cast<size_t>(index)], " " + choice));
      }
      EXPECT_EQ(stored.text, scoring::FormatChoiceScores(expected)) << "bit for bit, whatever else is in the batch";
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(read.ok()) << read;
  // Another sweep over the same questions asks the model nothing.
  spec.run_tag = "again";
  spec.entries[0].sampling.seed = 99;
  EXPECT_EQ(run("v"), 0);
  EXPECT_EQ(world.ItemHashes(), hashes);
}

TEST(CheckpointSourceTest, RefusesNamesThatLeaveTheRoot) {
  const TempDir dir;
  MakeModel(dir.File("outside"));
  MakeModel(dir.File("root/team/inside"));
  fs::create_directory_symlink(dir.File("outside"), dir.File("root/leads_out"));
  fs::create_directory_symlink(dir.File("root/team/inside"), dir.File("root/stays"));
  // The root's name as a prefix of another folder's is not the root.
  MakeModel(dir.File("root2"));
  fs::create_directory_symlink(dir.File("root2"), dir.File("root/neighbour"));

  CheckpointSource models(RootAt(dir.File("root")));
  for (const std::string& name :
       {std::string("../outside"), std::string("team/../../outside"), dir.File("outside"), dir.File("root/team/inside"),
        std::string("leads_out"), std::string("neighbour"), std::string(".."), std::string("."), std::string("")}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(models.Offer(name).status().code(), absl::StatusCode::kNotFound) << models.Offer(name).status();
    EXPECT_EQ(models.Load(name, NumericsSpec{.backend = "fake"}.Id(), 0).status().code(), absl::StatusCode::kNotFound);
  }
  const auto inside = models.Offer("team/inside");
  ASSERT_TRUE(inside.ok()) << inside.status();
  const auto linked = models.Offer("stays");
  ASSERT_TRUE(linked.ok()) << linked.status();
  EXPECT_EQ(linked->weights, inside->weights);
}

TEST(CheckpointSourceTest, WeightsThatChangedSinceTheOfferAreNotLoaded) {
  const TempDir dir;
  MakeModel(dir.File("alpha"), 1);
  CheckpointSource models(RootAt(dir.path()));
  const std::string numerics = NumericsSpec{.backend = "fake"}.Id();
  const auto before = models.Offer("alpha");
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_TRUE(models.Load("alpha", numerics, 0).ok());
  MakeModel(dir.File("alpha"), 2);
  const absl::Status changed = models.Load("alpha", numerics, 0).status();
  EXPECT_EQ(changed.code(), absl::StatusCode::kFailedPrecondition) << changed;
  EXPECT_THAT(std::string(changed.message()), AllOf(HasSubstr("alpha"), HasSubstr(before->weights.Hex())));
  // The next offer is of what is there now, and that is loaded.
  const auto after = models.Offer("alpha");
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_NE(after->weights, before->weights);
  EXPECT_TRUE(models.Load("alpha", numerics, 0).ok());
}

}  // namespace
}  // namespace iha::worker
