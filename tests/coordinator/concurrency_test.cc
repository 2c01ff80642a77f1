// Calls from many threads at once: a repeated request while the first is still in progress, and whole fleets.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "common/status_macros.h"
#include "coordinator/store/invariants.h"
#include "tests/coordinator/sim_world.h"
#include "tests/coordinator/store_fixture.h"

namespace iha::coordinator {
namespace {

// Runs `call` on `threads` threads at the same moment; returns all results.
template <class Fn>
auto AtOnce(int threads, const Fn& call) {
  std::vector<decltype(call())> results(static_cast<size_t>(threads), absl::UnknownError("not run"));
  std::atomic<int> waiting{threads};
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i) {
    pool.emplace_back([&, i] {
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      results[static_cast<size_t>(i)] = call();
    });
  }
  for (std::thread& thread : pool) thread.join();
  return results;
}

class ConcurrencyTest : public ::testing::Test {
 protected:
  ConcurrencyTest() : world_({.name = "threads", .on_disk = true}, db_.path()) {}

  void SetUp() override {
    ASSERT_TRUE(world_.Open().ok());
    ASSERT_TRUE(world_.coordinator().Submit(SimSweep(40, 2, 2)).ok());
  }
  void Introduce(const std::string& worker) {
    ASSERT_TRUE(
        world_.coordinator()
            .RegisterWorker(
                {.request_id = {"hello"}, .worker = {worker}, .incarnation = 1, .numerics_ids = {}, .description = ""})
            .ok());
    ASSERT_TRUE(
        world_.coordinator()
            .OfferModels(
                {.request_id = {"offer"}, .worker = {worker}, .offers = {{"m", SimWeights("A"), SimTokenizer(), 1024}}})
            .ok());
  }
  absl::StatusOr<AcquireLeaseReply> Acquire(const std::string& worker, const std::string& request) {
    return world_.coordinator().AcquireLease({.request_id = {request},
                                              .worker = {worker},
                                              .incarnation = 1,
                                              .models = {"m"},
                                              .numerics_ids = {SimSweep(1, 1, 1).numerics.Id()}});
  }
  void ExpectSound() {
    const auto violations = CheckInvariants(world_.store(), &benchmarks::EntryValues);
    ASSERT_TRUE(violations.ok()) << violations.status();
    EXPECT_TRUE(violations->empty()) << violations->front();
  }

  TempDb db_;
  SimWorld world_;
};

TEST_F(ConcurrencyTest, OneRequestIdIsOneLeaseWhileInProgress) {
  Introduce("w");
  for (int round = 0; round < 10; ++round) {
    const auto replies = AtOnce(4, [&] { return Acquire("w", fmt::format("r{}", round)); });
    for (const auto& reply : replies) {
      ASSERT_TRUE(reply.ok()) << reply.status();
      ASSERT_TRUE(reply->grant.has_value());
      EXPECT_EQ(reply->grant->shard, replies[0]->grant->shard);
      EXPECT_EQ(reply->grant->fence, replies[0]->grant->fence);
    }
  }
  ExpectSound();
}

TEST_F(ConcurrencyTest, OneCommitManyTimesAtOnce) {
  Introduce("w");
  const auto acquired = Acquire("w", "r");
  ASSERT_TRUE(acquired.ok() && acquired->grant.has_value());
  const LeaseGrant& grant = *acquired->grant;
  PutGenerationsRequest put{.request_id = {"p"}, .worker = {"w"}, .generations = {}};
  CommitItemsRequest commit{.request_id = {"c"},
                            .worker = {"w"},
                            .shard = grant.shard,
                            .fence = grant.fence,
                            .job_id = grant.job_id,
                            .items = {}};
  for (const int64_t item : grant.missing) {
    const auto work = DoSimWork(grant, item);
    ASSERT_TRUE(work.ok());
    put.generations.insert(put.generations.end(), work->generations.begin(), work->generations.end());
    commit.items.push_back(work->item);
  }
  for (const auto& reply : AtOnce(4, [&] { return world_.coordinator().PutGenerations(put); })) {
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_TRUE(reply->divergent.empty());
  }
  for (const auto& reply : AtOnce(4, [&] { return world_.coordinator().CommitItems(commit); })) {
    ASSERT_TRUE(reply.ok()) << reply.status();
    for (const absl::Status& outcome : reply->outcomes) EXPECT_TRUE(outcome.ok()) << outcome;
    EXPECT_TRUE(reply->shard_done);
  }
  ExpectSound();
}

TEST_F(ConcurrencyTest, RegisteringCancellingAndReleasingAtOnce) {
  for (const auto& reply : AtOnce(4, [&] {
         return world_.coordinator().RegisterWorker(
             {.request_id = {"hello"}, .worker = {"w"}, .incarnation = 3, .numerics_ids = {}, .description = ""});
       })) {
    EXPECT_TRUE(reply.ok()) << reply.status();
  }
  Introduce("v");
  const auto acquired = Acquire("v", "r");
  ASSERT_TRUE(acquired.ok() && acquired->grant.has_value());
  const ReleaseLeaseRequest release{.request_id = {"x"},
                                    .worker = {"v"},
                                    .shard = acquired->grant->shard,
                                    .fence = acquired->grant->fence,
                                    .reason = ReleaseReason::kFailed,
                                    .error = "oom"};
  for (const auto& status : AtOnce(4, [&] { return world_.coordinator().ReleaseLease(release); })) {
    EXPECT_TRUE(status.ok()) << status;
  }
  const auto list = world_.coordinator().List();
  ASSERT_TRUE(list.ok());
  for (const auto& status : AtOnce(4, [&] { return world_.coordinator().Cancel(list->at(0).sweep); })) {
    EXPECT_TRUE(status.ok()) << status;
  }
  ExpectSound();
}

// Several workers, a client that watches, a ticking loop: the rows are those of one worker.
TEST_F(ConcurrencyTest, FleetGivesTheReferencesRows) {
  std::atomic<bool> stop{false};
  std::atomic<int> failures{0};
  const auto work = [&](const std::string& worker) -> absl::Status {
    for (int request = 0;; ++request) {
      IHA_ASSIGN_OR_RETURN(const AcquireLeaseReply reply, Acquire(worker, fmt::format("r{}", request)));
      if (reply.all_done) return absl::OkStatus();
      if (!reply.grant.has_value()) {
        std::this_thread::yield();
        continue;
      }
      const LeaseGrant& grant = *reply.grant;
      for (const int64_t item : grant.missing) {
        IHA_ASSIGN_OR_RETURN(const SimWork done, DoSimWork(grant, item));
        IHA_RETURN_IF_ERROR(
            world_.coordinator()
                .PutGenerations({.request_id = {"p"}, .worker = {worker}, .generations = done.generations})
                .status());
        IHA_ASSIGN_OR_RETURN(const CommitItemsReply committed,
                             world_.coordinator().CommitItems({.request_id = {"c"},
                                                               .worker = {worker},
                                                               .shard = grant.shard,
                                                               .fence = grant.fence,
                                                               .job_id = grant.job_id,
                                                               .items = {done.item}}));
        IHA_RETURN_IF_ERROR(committed.outcomes.at(0));
      }
    }
  };
  for (const char* worker : {"w0", "w1", "w2", "w3"}) Introduce(worker);
  const auto list = world_.coordinator().List();
  ASSERT_TRUE(list.ok());
  const SweepId sweep = list->at(0).sweep;
  std::thread watcher([&] {
    while (!stop) {
      const auto progress = world_.coordinator().Status(sweep);
      if (!progress.ok() || !world_.coordinator().Tick().ok()) ++failures;
      std::this_thread::yield();
    }
  });
  std::atomic<int> next{0};
  for (const auto& status : AtOnce(4, [&] { return work(fmt::format("w{}", next++)); })) {
    EXPECT_TRUE(status.ok()) << status;
  }
  stop = true;
  watcher.join();
  EXPECT_EQ(failures, 0);
  const auto progress = world_.coordinator().Status(sweep);
  ASSERT_TRUE(progress.ok());
  EXPECT_EQ(progress->state, "done");
  EXPECT_EQ(progress->jobs[0].scored, 40);
  ExpectSound();
}

}  // namespace
}  // namespace iha::coordinator
