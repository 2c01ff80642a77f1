// What workers did, as the store keeps it: the latest report of a process stands, and nothing is added up twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status_macros.h"
#include "coordinator/store/snapshot_reader.h"
#include "tests/coordinator/sim_world.h"
#include "tests/coordinator/store_fixture.h"
#include "tests/proto/samples.h"

namespace iha::coordinator {
namespace {

std::vector<TelemetryRecord> TelemetryOf(Store& store, const JobId& job) {
  std::vector<TelemetryRecord> records;
  const absl::Status read = store.Read([&](ReadTxn& txn) -> absl::Status {
    auto found = txn.Telemetry(job);
    if (found.ok()) records = *std::move(found);
    return found.status();
  });
  EXPECT_TRUE(read.ok()) << read;
  return records;
}

TEST(Telemetry, TheLatestReportOfAProcessStands) {
  const TempDb db;
  const auto put = [](Store& store, const JobId& job, const char* worker, int64_t sequence, int64_t incarnation) {
    TelemetryRecord record{.job = job, .worker = {worker}, .telemetry = testing::SampleTelemetry(sequence)};
    record.telemetry.incarnation = incarnation;
    return store.Write([&](WriteTxn& txn) { return txn.PutTelemetry(record); });
  };
  const auto telemetry = [](int64_t sequence, int64_t incarnation) {
    JobTelemetry t = testing::SampleTelemetry(sequence);
    t.incarnation = incarnation;
    return t;
  };
  {
    StoreFixture fixture(db.path());
    const JobId job = fixture.job();
    EXPECT_THAT(TelemetryOf(fixture.store(), job), ::testing::IsEmpty());
    ASSERT_TRUE(put(fixture.store(), job, "w", 2, 1).ok());
    ASSERT_TRUE(put(fixture.store(), job, "w", 5, 1).ok());  // takes its place, operations included
    ASSERT_TRUE(put(fixture.store(), job, "w", 5, 1).ok());  // a repeated call
    ASSERT_TRUE(put(fixture.store(), job, "w", 3, 1).ok());  // one that was overtaken
    ASSERT_TRUE(put(fixture.store(), job, "w", 1, 2).ok());  // the process was started anew
    ASSERT_TRUE(put(fixture.store(), job, "v", 4, 1).ok());
    EXPECT_FALSE(put(fixture.store(), JobId{Sha256Of("none")}, "w", 1, 1).ok());
  }
  auto store = OpenSqliteStoreReadOnly(db.path());  // as another program reads it later
  ASSERT_TRUE(store.ok()) << store.status();
  StoreFixture other;
  const auto records = TelemetryOf(**store, other.job());
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].worker.value, "v");
  EXPECT_EQ(records[0].telemetry, telemetry(4, 1));
  EXPECT_EQ(records[1].telemetry, telemetry(5, 1));
  EXPECT_EQ(records[2].telemetry, telemetry(1, 2));
}

LeaseGrant Acquire(Coordinator& coordinator) {
  EXPECT_TRUE(coordinator
                  .RegisterWorker(
                      {.request_id = {"h"}, .worker = {"w"}, .incarnation = 1, .numerics_ids = {}, .description = ""})
                  .ok());
  EXPECT_TRUE(
      coordinator
          .OfferModels({.request_id = {"o"}, .worker = {"w"}, .offers = {{"m", SimWeights("m"), SimTokenizer(), 64}}})
          .ok());
  const auto reply = coordinator.AcquireLease({.request_id = {"a"},
                                               .worker = {"w"},
                                               .incarnation = 1,
                                               .models = {"m"},
                                               .numerics_ids = {SimSweep(1, 1, 1).numerics.Id()}});
  EXPECT_TRUE(reply.ok() && reply->grant.has_value()) << reply.status();
  return reply->grant.value();
}

// Telemetry comes with commits; of what is repeated, refused or overtaken nothing counts twice.
TEST(Telemetry, OfACommitIsStoredOnce) {
  const TempDb db;
  SimWorld world({.name = "telemetry", .on_disk = true}, db.path());
  ASSERT_TRUE(world.Open().ok());
  const auto sweep = world.coordinator().Submit(SimSweep(4, 2, 2));
  ASSERT_TRUE(sweep.ok()) << sweep.status();
  const LeaseGrant grant = Acquire(world.coordinator());
  const auto work = DoSimWork(grant, grant.missing.at(0));
  ASSERT_TRUE(work.ok());
  ASSERT_TRUE(world.coordinator()
                  .PutGenerations({.request_id = {"p"}, .worker = {"w"}, .generations = work->generations})
                  .ok());
  CommitItemsRequest commit{.request_id = {"c"},
                            .worker = {"w"},
                            .shard = grant.shard,
                            .fence = grant.fence,
                            .job_id = grant.job_id,
                            .items = {work->item},
                            .telemetry = JobTelemetry{.incarnation = 1, .sequence = 2, .engine = {}}};
  commit.telemetry->engine.generated_tokens = 40;
  const auto generated = [&] {
    std::vector<int64_t> tokens;
    EXPECT_TRUE(world.store()
                    .Read([&](ReadTxn& txn) -> absl::Status {
                      tokens.clear();
                      IHA_ASSIGN_OR_RETURN(const auto records, txn.Telemetry(grant.job_id));
                      for (const auto& record : records) tokens.push_back(record.telemetry.engine.generated_tokens);
                      return absl::OkStatus();
                    })
                    .ok());
    return tokens;
  };
  const std::vector<int64_t> first = {40};
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto reply = world.coordinator().CommitItems(commit);
    ASSERT_TRUE(reply.ok() && reply->outcomes.at(0).ok());
    EXPECT_EQ(generated(), first);
    ASSERT_TRUE(world.Restart().ok());  // and the coordinator's restart keeps it
    EXPECT_EQ(generated(), first);
  }
  // An older report that arrives late.
  commit.telemetry->sequence = 1;
  commit.telemetry->engine.generated_tokens = 10;
  ASSERT_TRUE(world.coordinator().CommitItems(commit).ok());
  EXPECT_EQ(generated(), first);
  // The lease is lost: no item is taken, but the work was done.
  const auto other = DoSimWork(grant, grant.missing.at(1));
  ASSERT_TRUE(other.ok());
  commit.items = {other->item};
  commit.fence.epoch += 1;
  commit.telemetry->sequence = 3;
  commit.telemetry->engine.generated_tokens = 70;
  const auto refused = world.coordinator().CommitItems(commit);
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(refused->outcomes.at(0).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(generated(), std::vector<int64_t>{70});
  // Nothing of it is in what tables are made of.
  const auto snapshot = ReadSnapshot(world.store(), *sweep, "1");
  ASSERT_TRUE(snapshot.ok());
  EXPECT_EQ(snapshot->jobs[0].items.size(), 1u);
}

}  // namespace
}  // namespace iha::coordinator
