// PickShard: what a grant costs among many sweeps and shards.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>

#include "coordinator/store/sqlite_store.h"
#include "tests/coordinator/sim_benchmark.h"
#include "tests/coordinator/sim_world.h"

namespace iha::coordinator {
namespace {

// Counts the loop steps of SQLite's programs on every connection that is opened while it lives: a cost that no machine
// changes. One at a time.
class StepCounter {
 public:
  StepCounter() { sqlite3_auto_extension(reinterpret_cast<void (*)()>(&Attach)); }
  ~StepCounter() { sqlite3_cancel_auto_extension(reinterpret_cast<void (*)()>(&Attach)); }
  StepCounter(const StepCounter&) = delete;
  StepCounter& operator=(const StepCounter&) = delete;
  int64_t steps() const { return steps_.load(); }

 private:
  static int Attach(sqlite3* db, char**, const void*) {
    sqlite3_progress_handler(
        db, 1, [](void*) { return steps_.fetch_add(1), 0; }, nullptr);
    return SQLITE_OK;
  }
  static inline std::atomic<int64_t> steps_{0};
};

struct Crowd {
  int finished_sweeps = 0;  // submitted before
  int64_t items = 2;        // of each sweep, one a shard
};

absl::Status AddSweep(WriteTxn& txn, const Crowd& crowd, int number, bool finished) {
  SweepSpec spec = SimSweep(crowd.items, 1, 1);
  spec.run_tag = fmt::format("{}", number);
  const auto plan = Plan(spec, SimOpener());
  if (!plan.ok()) return plan.status();
  const SweepRecord record{.id = plan->id, .spec = plan->spec, .submitted = absl::UnixEpoch()};
  if (auto status = txn.InsertSweep(record, plan->jobs); !status.ok()) return status;
  const ModelBinding binding{
      .sweep = plan->id, .model = "m", .weights = SimWeights("A"), .tokenizer = SimTokenizer(), .context_tokens = 1024};
  if (auto status = txn.BindModel(binding); !status.ok() || !finished) return status;
  const auto shards = txn.Shards(plan->jobs[0].id);
  if (!shards.ok()) return shards.status();
  for (const ShardRecord& shard : *shards) {
    if (auto moved = txn.MoveShard(shard, ShardState::kCancelled, absl::UnixEpoch()); !moved.ok()) return moved;
  }
  return absl::OkStatus();
}

// Of finding the first shard of the one sweep that is open.
int64_t StepsOfAGrant(const Crowd& crowd) {
  const StepCounter counter;
  const auto store = OpenSqliteStore({.path = ""});
  EXPECT_TRUE(store.ok()) << store.status();
  int64_t steps = 0;
  const absl::Status status = (*store)->Write([&](WriteTxn& txn) -> absl::Status {
    for (int i = 0; i <= crowd.finished_sweeps; ++i) {
      if (auto added = AddSweep(txn, crowd, i, i < crowd.finished_sweeps); !added.ok()) return added;
    }
    const WorkerRecord worker{.id = {"w"}, .incarnation = 1, .numerics_ids = {}, .description = "", .blamed = ""};
    if (auto upserted = txn.UpsertWorker(worker); !upserted.ok()) return upserted;
    const ModelBinding offer{
        .sweep = {}, .model = "m", .weights = SimWeights("A"), .tokenizer = SimTokenizer(), .context_tokens = 1024};
    if (auto offered = txn.RecordOffer({"w"}, offer); !offered.ok()) return offered;
    const int64_t before = counter.steps();
    const auto picked = txn.PickShard({.worker = {"w"},
                                       .models = {"m"},
                                       .numerics_ids = {SimSweep(1, 1, 1).numerics.Id()},
                                       .now = absl::UnixEpoch()});
    steps = counter.steps() - before;
    if (!picked.ok()) return picked.status();
    EXPECT_EQ(static_cast<int64_t>(picked->value_or(ShardId{0})), crowd.finished_sweeps * crowd.items + 1);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return steps;
}

TEST(Grant, CostsTheSameAmongManySweepsAndShards) {
  const int64_t alone = StepsOfAGrant({.finished_sweeps = 0, .items = 2});
  EXPECT_GT(alone, 0);
  EXPECT_EQ(StepsOfAGrant({.finished_sweeps = 200, .items = 2}), alone);
  EXPECT_EQ(StepsOfAGrant({.finished_sweeps = 0, .items = 500}), alone);
}

}  // namespace
}  // namespace iha::coordinator
