// A worker registers anew while the store fails in the middle of rescuing its old lease.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "common/status_macros.h"
#include "tests/coordinator/sim_world.h"
#include "tests/coordinator/store_fixture.h"

namespace iha::coordinator {
namespace {

void Execute(const std::string& path, const char* sql) {
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &raw), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(raw, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(raw);
  sqlite3_close(raw);
}

struct Seen {
  int64_t incarnation = 0;  // of the worker
  ShardState state = ShardState::kPending;
  size_t attempts = 0;
};

Seen Look(Store& store, ShardId id) {
  Seen seen;
  const absl::Status read = store.Read([&](ReadTxn& txn) -> absl::Status {
    IHA_ASSIGN_OR_RETURN(const std::optional<WorkerRecord> worker, txn.FindWorker({"w"}));
    IHA_ASSIGN_OR_RETURN(const std::optional<ShardRecord> shard, txn.FindShard(id));
    IHA_ASSIGN_OR_RETURN(const std::vector<AttemptRecord> attempts, txn.Attempts(id));
    seen = {.incarnation = worker.value().incarnation, .state = shard.value().state, .attempts = attempts.size()};
    return absl::OkStatus();
  });
  EXPECT_TRUE(read.ok()) << read;
  return seen;
}

TEST(RegisterWorker, HalfARescueIsNeverCommitted) {
  const TempDb db;
  SimWorld world({.name = "register", .on_disk = true}, db.path());
  ASSERT_TRUE(world.Open().ok());
  Coordinator& coordinator = world.coordinator();
  ASSERT_TRUE(coordinator.Submit(SimSweep(2, 1, 2)).ok());
  RegisterWorkerRequest hello{
      .request_id = {"h"}, .worker = {"w"}, .incarnation = 1, .numerics_ids = {}, .description = ""};
  ASSERT_TRUE(coordinator.RegisterWorker(hello).ok());
  ASSERT_TRUE(
      coordinator
          .OfferModels({.request_id = {"o"}, .worker = {"w"}, .offers = {{"m", SimWeights("A"), SimTokenizer(), 1024}}})
          .ok());
  const auto acquired = coordinator.AcquireLease({.request_id = {"r"},
                                                  .worker = {"w"},
                                                  .incarnation = 1,
                                                  .models = {"m"},
                                                  .numerics_ids = {SimSweep(1, 1, 1).numerics.Id()}});
  ASSERT_TRUE(acquired.ok() && acquired->grant.has_value());
  const ShardId shard = acquired->grant->shard;

  // The attempt's row goes in first; the shard's own UPDATE fails after it.
  Execute(db.path(),
          "CREATE TRIGGER broken BEFORE UPDATE OF state ON shard WHEN NEW.state = 'PENDING'"
          " BEGIN SELECT RAISE(ABORT, 'broken'); END");
  hello.incarnation = 2;
  EXPECT_EQ(coordinator.RegisterWorker(hello).status().code(), absl::StatusCode::kInternal);
  Seen seen = Look(world.store(), shard);
  EXPECT_EQ(seen.incarnation, 1);
  EXPECT_EQ(seen.state, ShardState::kLeased);
  EXPECT_EQ(seen.attempts, 1u);  // the grant alone

  Execute(db.path(), "DROP TRIGGER broken");
  EXPECT_TRUE(coordinator.RegisterWorker(hello).ok());
  seen = Look(world.store(), shard);
  EXPECT_EQ(seen.incarnation, 2);
  EXPECT_EQ(seen.state, ShardState::kPending);
  EXPECT_EQ(seen.attempts, 2u);
}

}  // namespace
}  // namespace iha::coordinator
