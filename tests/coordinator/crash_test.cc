// Kills a coordinator at every registered store point, each time one hit later, and checks what the file holds; and
// fails each commit once. Nothing that was acknowledged is lost, invariants hold, the rows end up the same.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "common/fault_point.h"
#include "common/status_macros.h"
#include "coordinator/store/invariants.h"
#include "tests/coordinator/sim_world.h"
#include "tests/coordinator/store_fixture.h"

namespace iha::coordinator {
namespace {

constexpr int64_t kItems = 3;
const SweepSpec& Spec() {
  static const SweepSpec spec = SimSweep(kItems, 2, 2);
  return spec;
}

// One worker's life, item by item, sending a call again with the same id while the store cannot take it.
class Driver {
 public:
  Driver(SimWorld* world, int64_t incarnation) : world_(*world), incarnation_(incarnation) {}

  absl::Status Run(const std::function<void(int64_t)>& acknowledged) {
    IHA_ASSIGN_OR_RETURN(const SweepId sweep, Retry([&](Coordinator& c) { return c.Submit(Spec()); }));
    static_cast<void>(sweep);
    const RegisterWorkerRequest hello{
        .request_id = Next(), .worker = worker_, .incarnation = incarnation_, .numerics_ids = {}, .description = ""};
    IHA_RETURN_IF_ERROR(Retry([&](Coordinator& c) { return c.RegisterWorker(hello); }).status());
    const OfferModelsRequest offer{
        .request_id = Next(), .worker = worker_, .offers = {{"m", SimWeights("A"), SimTokenizer(), 1024}}};
    IHA_RETURN_IF_ERROR(Retry([&](Coordinator& c) { return c.OfferModels(offer); }).status());
    for (int idle = 0; idle < 100;) {
      const AcquireLeaseRequest acquire{.request_id = Next(),
                                        .worker = worker_,
                                        .incarnation = incarnation_,
                                        .models = {"m"},
                                        .numerics_ids = {Spec().numerics.Id()}};
      IHA_ASSIGN_OR_RETURN(const AcquireLeaseReply reply,
                           Retry([&](Coordinator& c) { return c.AcquireLease(acquire); }));
      if (reply.all_done) return absl::OkStatus();
      if (!reply.grant.has_value()) {
        ++idle;
        IHA_RETURN_IF_ERROR(world_.Advance(absl::Seconds(1)));
        continue;
      }
      for (const int64_t item : reply.grant->missing) {
        IHA_RETURN_IF_ERROR(Land(*reply.grant, item));
        acknowledged(item);
      }
    }
    return absl::DeadlineExceededError("stuck");
  }

 private:
  absl::Status Land(const LeaseGrant& grant, int64_t item) {
    IHA_ASSIGN_OR_RETURN(const SimWork work, DoSimWork(grant, item));
    const PutGenerationsRequest put{.request_id = Next(), .worker = worker_, .generations = work.generations};
    IHA_RETURN_IF_ERROR(Retry([&](Coordinator& c) { return c.PutGenerations(put); }).status());
    const CommitItemsRequest commit{.request_id = Next(),
                                    .worker = worker_,
                                    .shard = grant.shard,
                                    .fence = grant.fence,
                                    .job_id = grant.job_id,
                                    .items = {work.item}};
    IHA_ASSIGN_OR_RETURN(const CommitItemsReply reply, Retry([&](Coordinator& c) { return c.CommitItems(commit); }));
    return reply.outcomes.at(0);
  }
  template <class Fn>
  auto Retry(const Fn& call) -> decltype(call(std::declval<Coordinator&>())) {
    auto result = call(world_.coordinator());
    for (int i = 0; i < 10 && absl::IsUnavailable(result.status()); ++i) result = call(world_.coordinator());
    return result;
  }
  RequestId Next() { return {fmt::format("{}-{}", incarnation_, ++requests_)}; }

  SimWorld& world_;
  const WorkerId worker_{"w"};
  const int64_t incarnation_;
  int requests_ = 0;
};

struct Rows {
  std::set<int64_t> items;
  Digest digest;
};

absl::StatusOr<Rows> ReadRows(Store& store) {
  Rows rows;
  IHA_RETURN_IF_ERROR(store.Read([&](ReadTxn& txn) -> absl::Status {
    IHA_ASSIGN_OR_RETURN(const std::vector<SweepRecord> sweeps, txn.Sweeps());
    rows = {};
    for (const SweepRecord& sweep : sweeps) {
      IHA_ASSIGN_OR_RETURN(const std::vector<JobRecord> jobs, txn.Jobs(sweep.id));
      IHA_ASSIGN_OR_RETURN(const std::vector<int64_t> items, txn.StoredItems(jobs.at(0).id));
      rows.items.insert(items.begin(), items.end());
      IHA_ASSIGN_OR_RETURN(rows.digest, txn.ItemsDigest(jobs.at(0).id));
    }
    return absl::OkStatus();
  }));
  return rows;
}

Digest ReferenceDigest() {
  SimWorld world({.name = "reference"}, "");
  EXPECT_TRUE(world.Open().ok());
  EXPECT_TRUE(Driver(&world, 1).Run([](int64_t) {}).ok());
  return ReadRows(world.store())->digest;
}

// Runs the sweep in a child that dies at the nth hit of `point`. Returns whether it died; `acknowledged` = the items
// whose commit the child had been told of.
bool RunAndDie(const std::string& db, std::string_view point, int nth, std::set<int64_t>* acknowledged) {
  int channel[2];
  EXPECT_EQ(pipe(channel), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(channel[0]);
    if (!ArmFaultPoints(fmt::format("{}:kill:{}", point, nth)).ok()) _exit(9);
    SimWorld world({.name = "child", .on_disk = true}, db);
    const absl::Status opened = world.Open();
    if (!opened.ok()) _exit(8);
    const absl::Status ran = Driver(&world, 1).Run([&](int64_t item) {
      const char byte = static_cast<char>(item);
      if (write(channel[1], &byte, 1) != 1) _exit(7);
    });
    _exit(ran.ok() ? 0 : 6);
  }
  close(channel[1]);
  for (char byte; read(channel[0], &byte, 1) == 1;) acknowledged->insert(byte);
  close(channel[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status)) {
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
    return true;
  }
  EXPECT_EQ(WEXITSTATUS(status), 0) << "the child failed by itself";
  return false;
}

TEST(StoreCrash, EveryPointEveryHit) {
  const Digest reference = ReferenceDigest();
  int points = 0;
  int deaths = 0;
  for (const FaultPoint& point : kFaultPoints) {
    if (!point.name.starts_with("store.")) continue;
    ++points;
    for (int nth = 1; nth < 200; ++nth) {
      const std::string what = fmt::format("{} hit {}", point.name, nth);
      TempDb db;
      std::set<int64_t> acknowledged;
      const bool died = RunAndDie(db.path(), point.name, nth, &acknowledged);
      SimWorld world({.name = "survivor", .on_disk = true}, db.path());
      ASSERT_TRUE(world.Open().ok()) << what;
      const auto violations = CheckInvariants(world.store(), &benchmarks::EntryValues);
      ASSERT_TRUE(violations.ok()) << what << violations.status();
      EXPECT_TRUE(violations->empty()) << what << ": " << violations->front();
      const auto rows = ReadRows(world.store());
      ASSERT_TRUE(rows.ok()) << what;
      for (const int64_t item : acknowledged) EXPECT_TRUE(rows->items.contains(item)) << what << ": lost " << item;
      const absl::Status finished = Driver(&world, 2).Run([](int64_t) {});
      EXPECT_TRUE(finished.ok()) << what << ": " << finished;
      EXPECT_EQ(ReadRows(world.store())->digest, reference) << what;
      EXPECT_TRUE(CheckInvariants(world.store(), &benchmarks::EntryValues)->empty()) << what;
      if (!died) break;  // the point has fewer hits than nth: this run met no injection
      ++deaths;
      ASSERT_LT(nth, 199) << what;
    }
  }
  EXPECT_EQ(points, 4);
  EXPECT_GT(deaths, 30);
}

TEST(StoreFault, EveryCommitFailsOnceAndTheCallIsSentAgain) {
  const Digest reference = ReferenceDigest();
  for (const std::string point : {"store.commit.begin", "store.commit.before_commit"}) {
    for (int nth = 1; nth <= 25; ++nth) {  // 25 is more than the run has commits
      SimWorld world({.name = "fault"}, "");
      ASSERT_TRUE(world.Open().ok());
      ASSERT_TRUE(ArmFaultPoints(fmt::format("{}:unavailable:{}", point, nth)).ok());
      const absl::Status ran = Driver(&world, 1).Run([](int64_t) {});
      ASSERT_TRUE(ArmFaultPoints("").ok());
      ASSERT_TRUE(ran.ok()) << point << " hit " << nth << ": " << ran;
      EXPECT_EQ(ReadRows(world.store())->digest, reference) << point << " hit " << nth;
      EXPECT_TRUE(CheckInvariants(world.store(), &benchmarks::EntryValues)->empty()) << point << " hit " << nth;
    }
  }
}

}  // namespace
}  // namespace iha::coordinator
