// Cells and average ranks in the database: when they are computed, keyed by what, filled in at start-up; the snapshot
// and samples that reports read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status_macros.h"
#include "coordinator/ingest/regrade.h"
#include "coordinator/store/invariants.h"
#include "coordinator/store/snapshot_reader.h"
#include "tests/coordinator/sim_world.h"
#include "tests/coordinator/store_fixture.h"

namespace iha::coordinator {
namespace {

using ::testing::HasSubstr;

class ValuesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto store = OpenSqliteStore({.path = ""});
    ASSERT_TRUE(store.ok());
    store_ = *std::move(store);
  }
  // `with_values`: the hooks are set, as in the service.
  void Start(bool with_values) {
    CoordinatorConfig config = SimCoordinatorConfig();
    if (with_values) {
      config.metric_values = [this](const reports::Snapshot& snapshot, size_t job) {
        ++metric_calls_;
        std::vector<MetricValueRecord> rows;
        for (const std::string& metric : snapshot.jobs[job].spec.entry.metrics) {
          MetricValueRecord& row = rows.emplace_back();
          row.metric = metric;
          row.planned = snapshot.jobs[job].spec.items;
          row.scored = static_cast<int64_t>(snapshot.jobs[job].items.size());
          if (row.scored > 0) row.value = 0.5;
        }
        return rows;
      };
      config.average_ranks = [this](const reports::Snapshot& snapshot) {
        ++rank_calls_;
        std::vector<AverageRankRecord> rows(snapshot.spec.models.size());
        for (size_t m = 0; m < rows.size(); ++m) {
          rows[m].model_index = static_cast<int32_t>(m);
          rows[m].value = 1.5;
        }
        return rows;
      };
      config.render_table = [](const reports::Snapshot& snapshot, const std::string& layout,
                               const std::string& baseline, const std::string& format) {
        return fmt::format("{} {} {} {}", snapshot.jobs.size(), layout, baseline, format);
      };
    }
    const BenchmarkOpener opener =
        [this](const BenchmarkRef& ref) -> absl::StatusOr<std::unique_ptr<const benchmarks::Benchmark>> {
      const auto items = ref.options.find("items");
      if (items != ref.options.end() && items->second == lost_items_) return NotFound("its data are gone");
      return OpenSimBenchmark(ref);
    };
    auto opened = Coordinator::Open(store_.get(), &clock_, opener, config);
    ASSERT_TRUE(opened.ok()) << opened.status();
    coordinator_ = *std::move(opened);
  }
  SweepId SubmitTwoModels() {
    SweepSpec spec = SimSweep(4, 2, 2);
    spec.models.push_back({"m2", ""});
    const auto sweep = coordinator_->Submit(spec);
    EXPECT_TRUE(sweep.ok()) << sweep.status();
    return *sweep;
  }
  // Finishes all shards of one model.
  void Work(const std::string& model) {
    const std::string worker = "worker-" + model;
    ASSERT_TRUE(
        coordinator_
            ->RegisterWorker(
                {.request_id = {"h"}, .worker = {worker}, .incarnation = 1, .numerics_ids = {}, .description = ""})
            .ok());
    ASSERT_TRUE(
        coordinator_
            ->OfferModels(
                {.request_id = {"o"}, .worker = {worker}, .offers = {{model, SimWeights(model), SimTokenizer(), 64}}})
            .ok());
    for (int request = 0;; ++request) {
      const auto reply = coordinator_->AcquireLease({.request_id = {fmt::format("r{}", request)},
                                                     .worker = {worker},
                                                     .incarnation = 1,
                                                     .models = {model},
                                                     .numerics_ids = {SimSweep(1, 1, 1).numerics.Id()}});
      ASSERT_TRUE(reply.ok()) << reply.status();
      if (!reply->grant.has_value()) return;
      for (const int64_t item : reply->grant->missing) {
        const auto work = DoSimWork(*reply->grant, item);
        ASSERT_TRUE(work.ok());
        ASSERT_TRUE(
            coordinator_->PutGenerations({.request_id = {"p"}, .worker = {worker}, .generations = work->generations})
                .ok());
        const auto committed = coordinator_->CommitItems({.request_id = {"c"},
                                                          .worker = {worker},
                                                          .shard = reply->grant->shard,
                                                          .fence = reply->grant->fence,
                                                          .job_id = reply->grant->job_id,
                                                          .items = {work->item}});
        ASSERT_TRUE(committed.ok() && committed->outcomes.at(0).ok());
      }
    }
  }
  // Introduces a worker that offers `model`, and asks for one shard.
  AcquireLeaseReply Acquire(const std::string& worker, const std::string& model) {
    EXPECT_TRUE(
        coordinator_
            ->RegisterWorker(
                {.request_id = {"h"}, .worker = {worker}, .incarnation = 1, .numerics_ids = {}, .description = ""})
            .ok());
    EXPECT_TRUE(
        coordinator_
            ->OfferModels(
                {.request_id = {"o"}, .worker = {worker}, .offers = {{model, SimWeights(model), SimTokenizer(), 64}}})
            .ok());
    const auto reply = coordinator_->AcquireLease({.request_id = {"one"},
                                                   .worker = {worker},
                                                   .incarnation = 1,
                                                   .models = {model},
                                                   .numerics_ids = {SimSweep(1, 1, 1).numerics.Id()}});
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? *reply : AcquireLeaseReply{};
  }
  std::pair<size_t, size_t> Rows(const SweepId& sweep) {
    size_t values = 0;
    size_t ranks = 0;
    EXPECT_TRUE(store_
                    ->Read([&](ReadTxn& txn) -> absl::Status {
                      values = 0;
                      IHA_ASSIGN_OR_RETURN(const std::vector<JobRecord> jobs, txn.Jobs(sweep));
                      for (const JobRecord& job : jobs) {
                        IHA_ASSIGN_OR_RETURN(const std::vector<MetricValueRecord> rows, txn.MetricValues(job.id));
                        IHA_ASSIGN_OR_RETURN(const Digest digest, txn.ItemsDigest(job.id));
                        for (const MetricValueRecord& row : rows) {
                          EXPECT_EQ(row.items_digest, digest);
                          EXPECT_EQ(row.grader_version, "sim-grader/1");
                          EXPECT_EQ(row.value, 0.5);
                        }
                        values += rows.size();
                      }
                      IHA_ASSIGN_OR_RETURN(const std::vector<AverageRankRecord> rows, txn.AverageRanks(sweep));
                      ranks = rows.size();
                      return absl::OkStatus();
                    })
                    .ok());
    return {values, ranks};
  }

  SimulatedClock clock_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Coordinator> coordinator_;
  std::string lost_items_;  // benchmarks with this many items do not open any more
  int metric_calls_ = 0;
  int rank_calls_ = 0;
};

TEST_F(ValuesTest, CellsAtTheJobsEndRanksAtTheSweepsEnd) {
  Start(true);
  const SweepId sweep = SubmitTwoModels();
  ASSERT_TRUE(coordinator_->Tick().ok());
  EXPECT_EQ(Rows(sweep), std::make_pair(size_t{0}, size_t{0}));
  Work("m");
  ASSERT_TRUE(coordinator_->Tick().ok());
  EXPECT_EQ(Rows(sweep), std::make_pair(size_t{2}, size_t{0}));  // sim.exact and maj@2
  Work("m2");
  ASSERT_TRUE(coordinator_->Tick().ok());
  EXPECT_EQ(Rows(sweep), std::make_pair(size_t{4}, size_t{2}));
  // Nothing new: nothing is computed again.
  ASSERT_TRUE(coordinator_->Tick().ok());
  Start(true);
  EXPECT_EQ(metric_calls_, 2);
  EXPECT_EQ(rank_calls_, 1);
}

TEST_F(ValuesTest, ARescueThatFailsDoesNotKeepValuesBack) {
  Start(true);
  SweepSpec stuck = SimSweep(1, 1, 1);
  stuck.max_attempts = 1;
  ASSERT_TRUE(coordinator_->Submit(stuck).ok());
  ASSERT_TRUE(Acquire("holder", "m").grant.has_value());
  const SweepId sweep = SubmitTwoModels();
  Work("m");
  Work("m2");
  lost_items_ = "1";  // the quarantine that is due needs item ids
  clock_.Advance(absl::Seconds(31));
  EXPECT_EQ(coordinator_->Tick().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Rows(sweep), std::make_pair(size_t{4}, size_t{2}));
}

// An interrupted older sweep in the same file neither gets the run's workers nor keeps them from ending.
TEST_F(ValuesTest, ServeOnlyLeavesOtherSweepsAlone) {
  Start(false);
  SweepSpec spec = SimSweep(4, 1, 2);
  spec.models.push_back({"m3", ""});
  const auto older = coordinator_->Submit(spec);
  ASSERT_TRUE(older.ok());
  ASSERT_TRUE(Acquire("interrupted", "m3").grant.has_value());  // a lease of it is live, too
  const SweepId sweep = SubmitTwoModels();
  coordinator_->ServeOnly(sweep);
  const AcquireLeaseReply reply = Acquire("w", "m");
  ASSERT_TRUE(reply.grant.has_value());
  EXPECT_EQ(reply.grant->job.sweep, sweep);
  EXPECT_EQ(reply.wanted_models, (std::vector<std::string>{"m", "m2"}));
  EXPECT_FALSE(reply.all_done);
  ASSERT_TRUE(coordinator_
                  ->ReleaseLease({.request_id = {"x"},
                                  .worker = {"w"},
                                  .shard = reply.grant->shard,
                                  .fence = reply.grant->fence,
                                  .error = ""})
                  .ok());
  Work("m");
  Work("m2");
  const AcquireLeaseReply last = Acquire("late", "m");
  EXPECT_FALSE(last.grant.has_value());
  EXPECT_TRUE(last.all_done);
  EXPECT_TRUE(last.wanted_models.empty());
  const auto progress = coordinator_->Status(*older);
  ASSERT_TRUE(progress.ok());
  EXPECT_EQ(progress->state, "running");
  EXPECT_EQ(progress->jobs[0].scored, 0);
  EXPECT_EQ(progress->jobs[0].state, "waiting_for_model");  // its "m" may be another one: not bound by this run
}

// A cancel may be a job's last step: nothing else would have its values computed.
TEST_F(ValuesTest, CancelMakesValuesDue) {
  Start(true);
  const SweepId sweep = SubmitTwoModels();
  Work("m");
  ASSERT_TRUE(coordinator_->Tick().ok());
  ASSERT_EQ(metric_calls_, 1);
  ASSERT_TRUE(coordinator_->Cancel(sweep).ok());
  ASSERT_TRUE(coordinator_->Tick().ok());
  EXPECT_EQ(metric_calls_, 2);
  EXPECT_EQ(rank_calls_, 1);
}

TEST_F(ValuesTest, StartUpFillsInWhatIsMissing) {
  Start(false);
  const SweepId sweep = SubmitTwoModels();
  Work("m");
  Work("m2");
  ASSERT_TRUE(coordinator_->Tick().ok());
  EXPECT_EQ(Rows(sweep), std::make_pair(size_t{0}, size_t{0}));
  Start(true);
  EXPECT_EQ(Rows(sweep), std::make_pair(size_t{4}, size_t{2}));
}

// A fence of an earlier life can never be issued again.
TEST_F(ValuesTest, IncarnationGrowsWithEachStart) {
  Start(false);
  const int64_t first = coordinator_->incarnation();
  EXPECT_GE(first, 1);
  Start(false);
  EXPECT_EQ(coordinator_->incarnation(), first + 1);
}

TEST_F(ValuesTest, TableComesFromTheHook) {
  Start(false);
  const SweepId sweep = SubmitTwoModels();
  EXPECT_EQ(coordinator_->Table(sweep, "generic", "m", "md").status().code(), absl::StatusCode::kUnimplemented);
  Start(true);
  const auto table = coordinator_->Table(sweep, "generic", "m", "md");
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(*table, "2 generic m md");
  EXPECT_EQ(coordinator_->Table({}, "generic", "m", "md").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ValuesTest, SnapshotAndSamplesShowWhatIsStored) {
  Start(false);
  const SweepId sweep = SubmitTwoModels();
  Work("m");
  const auto snapshot = ReadSnapshot(*store_, sweep, "1.2");
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ(snapshot->iha_eval_version, "1.2");
  EXPECT_EQ(IdOf(snapshot->spec), sweep);
  ASSERT_EQ(snapshot->jobs.size(), 2u);
  EXPECT_EQ(snapshot->jobs[0].weights, SimWeights("m"));
  EXPECT_TRUE(snapshot->jobs[1].weights.empty());  // not bound yet
  EXPECT_TRUE(snapshot->jobs[1].items.empty());
  ASSERT_EQ(snapshot->jobs[0].items.size(), 4u);
  const reports::ItemRow& row = snapshot->jobs[0].items[1];
  EXPECT_EQ(row.index, 1);
  EXPECT_EQ(row.item_id, "sim-1");
  EXPECT_EQ(row.samples, 2);
  EXPECT_EQ(row.truncated, 0);
  EXPECT_EQ(row.empty, 0);
  ASSERT_EQ(row.values.size(), 2u);
  EXPECT_EQ(row.values[0].metric, "sim.exact");
  EXPECT_EQ(row.values[0].score, (Score{1, 2}));  // sample k of item i is right iff i + k is even

  std::vector<std::string> seen;
  ASSERT_TRUE(ReadSamples(*store_, sweep, [&](const SampleRow& sample) -> absl::Status {
                EXPECT_EQ(sample.item.Hash(), snapshot->jobs[0].items[static_cast<size_t>(sample.item.index)].hash);
                for (const Generation& generation : sample.generations) seen.push_back(generation.text);
                return absl::OkStatus();
              }).ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"ans0", "no1", "no0", "ans1", "ans2", "no1", "no0", "ans3"}));

  const std::string id = sweep.Hex();
  EXPECT_EQ(*FindSweepByPrefix(*store_, id.substr(0, 8)), sweep);
  EXPECT_EQ(FindSweepByPrefix(*store_, "zz").status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(coordinator_->Submit(SimSweep(3, 1, 1)).ok());
  EXPECT_EQ(FindSweepByPrefix(*store_, "").status().code(), absl::StatusCode::kInvalidArgument);
}

// What a worker hears when it is not known, out of date, or careless.
TEST_F(ValuesTest, WorkersHearWhatToDo) {
  Start(false);
  SubmitTwoModels();
  const auto acquire = [&](const std::string& worker, int64_t incarnation, const std::string& request) {
    return coordinator_
        ->AcquireLease({.request_id = {request},
                        .worker = {worker},
                        .incarnation = incarnation,
                        .models = {"m"},
                        .numerics_ids = {}})
        .status();
  };
  EXPECT_EQ(acquire("nobody", 1, "r").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(coordinator_->Heartbeat({.request_id = {"b"}, .worker = {"nobody"}, .incarnation = 1, .leases = {}})
                .status()
                .code(),
            absl::StatusCode::kNotFound);
  const auto hello = coordinator_->RegisterWorker(
      {.request_id = {"h"}, .worker = {"w"}, .incarnation = 5, .numerics_ids = {}, .description = ""});
  ASSERT_TRUE(hello.ok());
  EXPECT_EQ(hello->wanted_models, (std::vector<std::string>{"m", "m2"}));
  EXPECT_EQ(hello->coordinator_incarnation, coordinator_->incarnation());
  EXPECT_EQ(acquire("w", 4, "r").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(acquire("w", 6, "r").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(acquire("w", 5, "").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(acquire("", 5, "r").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(acquire("w", 5, "r").ok());
  EXPECT_EQ(coordinator_->OfferModels({.request_id = {"o"}, .worker = {"w"}, .offers = {{"../m", {}, {}, 1}}})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      coordinator_->OfferModels({.request_id = {"o"}, .worker = {"w"}, .offers = {{"m", {}, {}, 1}}}).status().code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(coordinator_
                ->CommitItems(
                    {.request_id = {"c"}, .worker = {"w"}, .shard = ShardId{1}, .fence = {}, .job_id = {}, .items = {}})
                .status()
                .code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(
      coordinator_->ReleaseLease({.request_id = {"x"}, .worker = {"w"}, .shard = ShardId{99}, .fence = {}, .error = ""})
          .code(),
      absl::StatusCode::kNotFound);
  Generation unfinished;
  EXPECT_EQ(
      coordinator_->PutGenerations({.request_id = {"p"}, .worker = {"w"}, .generations = {unfinished}}).status().code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(coordinator_->Cancel({}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(coordinator_->Status({}).status().code(), absl::StatusCode::kNotFound);
}

// Equal key, other value: named in the reply, the first one stays.
TEST_F(ValuesTest, FirstGenerationStays) {
  Start(false);
  Generation good;
  good.key.digest = Sha256Of("key");
  good.text = "right";
  good.finish = FinishReason::kEos;
  Generation bad = good;
  bad.text = "wrong";
  ASSERT_TRUE(coordinator_->PutGenerations({.request_id = {"p"}, .worker = {"w"}, .generations = {good}}).ok());
  auto other = coordinator_->PutGenerations({.request_id = {"p"}, .worker = {"w"}, .generations = {bad}});
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other->divergent, (std::vector<GenKey>{good.key}));
  auto found = coordinator_->LookupGenerations({.keys = {good.key, {}}});
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->found.size(), 1u);
  EXPECT_EQ(found->found[0].text, "right");
}

TEST_F(ValuesTest, ARegradeAddsRowsUnderAnotherGraderVersionAndTheOldOnesStay) {
  Start(false);
  const SweepId sweep = SubmitTwoModels();
  Work("m");
  JobId job;
  std::vector<ItemResult> before;
  const auto load = [&](const std::string& version) {
    std::vector<ItemResult> items;
    EXPECT_TRUE(store_
                    ->Read([&](ReadTxn& txn) -> absl::Status {
                      job = txn.Jobs(sweep)->at(0).id;
                      const auto stored = txn.StoredItems(job);
                      for (const int64_t item : *stored) {
                        items.push_back(version.empty() ? **txn.LoadItem(job, item)
                                                        : **txn.LoadItemGraded(job, item, version));
                      }
                      return absl::OkStatus();
                    })
                    .ok());
    return items;
  };
  before = load("");
  ASSERT_EQ(before.size(), 4u);
  // The same graders: nothing to add.
  const auto same = RegradeSweep(*store_, sweep, SimOpener());
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(same->at(0).after, "");
  EXPECT_EQ(same->at(0).items, 4);
  EXPECT_EQ(same->at(1).items, 0);
  // Another version: its rows lie beside the first ones.
  const BenchmarkOpener newer = SimOpener({.grader_version = "sim-grader/2"});
  const auto regraded = RegradeSweep(*store_, sweep, newer);
  ASSERT_TRUE(regraded.ok()) << regraded.status();
  EXPECT_EQ(regraded->at(0).before, "sim-grader/1");
  EXPECT_EQ(regraded->at(0).after, "sim-grader/2");
  EXPECT_EQ(regraded->at(0).changed, 0);
  EXPECT_EQ(regraded->at(0).metrics.at(0).sum_before, regraded->at(0).metrics.at(0).sum_after);
  EXPECT_EQ(load(""), before);
  EXPECT_EQ(load("sim-grader/2"), before);
  // Tables show them when asked to; a job that was not graded so stays as it is.
  const auto shown = ReadSnapshot(*store_, sweep, "1.2", "sim-grader/2");
  ASSERT_TRUE(shown.ok()) << shown.status();
  EXPECT_EQ(shown->jobs[0].spec.grader_version, "sim-grader/2");
  EXPECT_EQ(shown->jobs[0].items.size(), 4u);
  EXPECT_EQ(shown->jobs[1].spec.grader_version, "sim-grader/1");
  const absl::Status unknown = ReadSnapshot(*store_, sweep, "1.2", "sim-grader/3").status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.message()), ::testing::HasSubstr("unknown grader version \"sim-grader/3\""));
  EXPECT_EQ(RegradeSweep(*store_, sweep, newer)->at(0).after, "");
  EXPECT_TRUE(CheckInvariants(*store_, &benchmarks::EntryValues)->empty());
  const auto other_data = RegradeSweep(*store_, sweep, SimOpener({.data = "v2"}));
  EXPECT_EQ(other_data.status().code(), absl::StatusCode::kFailedPrecondition);
}

// What another process judged can't be graded again here: the worker's word counts, for that metric alone, and where it
// can be so.
TEST_F(ValuesTest, AnImpureGradeIsTakenOnTheWorkersWordAPureOneIsNot) {
  Start(false);
  SweepSpec spec = SimSweep(2, 1, 2);
  spec.entries[0].metrics = {"sim.exact", "sim.word"};
  ASSERT_TRUE(coordinator_->Submit(spec).ok());
  const AcquireLeaseReply lease = Acquire("w", "m");
  ASSERT_TRUE(lease.grant.has_value());
  const auto commit = [&](int64_t index, size_t metric, bool of_this_text = true) {
    auto work = DoSimWork(*lease.grant, index);
    EXPECT_TRUE(work.ok()) << work.status();
    std::vector<SampleGrade>& grades = work->item.samples[0].grades;
    EXPECT_EQ(grades.size(), 2u);
    grades[metric].score = {grades[metric].score.num == 0 ? 1 : 0, 1};
    if (!of_this_text) grades[metric].extracted = "what the text does not say";
    work->item.values = *benchmarks::ItemValues(lease.grant->job.entry.metrics, {grades});
    EXPECT_TRUE(
        coordinator_->PutGenerations({.request_id = {"p"}, .worker = {"w"}, .generations = work->generations}).ok());
    const auto reply = coordinator_->CommitItems({.request_id = {"c"},
                                                  .worker = {"w"},
                                                  .shard = lease.grant->shard,
                                                  .fence = lease.grant->fence,
                                                  .job_id = lease.grant->job_id,
                                                  .items = {work->item}});
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply->outcomes.at(0);
  };
  EXPECT_EQ(commit(0, 0).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(commit(0, 1, false).code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(commit(0, 1).ok());
}

}  // namespace
}  // namespace iha::coordinator
