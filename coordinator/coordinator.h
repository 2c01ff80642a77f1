// coordinator.h: the service behind the calls of common/coordinator_api.h, over an injected Store and Clock.
//
// Ties together planner, store, lease book, rescuer and ingest. Hard state is in the store; soft state (deadlines, who
// is alive) is here and lost on a restart, which Open makes up for: incarnation + 1, every live lease one full TTL plus
// a spread, missing table values computed.
// Thread: any; methods block on the store's writer thread, never while holding the mutex. Idempotent as
// common/coordinator_api.h says. Errors: codes are actions (style.md 3.6); NotFound to a worker means "register again".
#pragma once

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/clock.h"
#include "common/coordinator_api.h"
#include "coordinator/ingest/result_ingest.h"
#include "coordinator/lease/lease_book.h"
#include "coordinator/planner/benchmark_pool.h"
#include "coordinator/rescue/rescue_policy.h"
#include "coordinator/store/store.h"
#include "reports/snapshot.h"

namespace iha::coordinator {

struct CoordinatorConfig {
  LeaseConfig lease;
  RescueConfig rescue;
  RegradeMode regrade = RegradeMode::kAll;
  absl::Duration idle_retry = absl::Seconds(1);  // a worker without work asks again after this
  std::string version;                           // of the program, for snapshots
#ifdef NDEBUG
  bool check_at_start = false;  // refuse a database that breaks an invariant; reads every row
#else
  bool check_at_start = true;
#endif

  // reports' aggregation: a finished job's cells and, once all jobs of a sweep are final, its average ranks. Called off
  // the writer thread; the coordinator fills in the keys (job, sweep, grader version, digest). Unset: no such rows are
  // written.
  std::function<absl::StatusOr<std::vector<MetricValueRecord>>(const reports::Snapshot&, size_t job)> metric_values;
  std::function<absl::StatusOr<std::vector<AverageRankRecord>>(const reports::Snapshot&)> average_ranks;
  // reports' tables, for ClientApi::Table. Unset: Table answers Unimplemented.
  std::function<absl::StatusOr<std::string>(const reports::Snapshot&, const std::string& layout,
                                            const std::string& baseline, const std::string& format)>
      render_table;
  // What an operator's log should say: sweeps that come and end, workers that join. One line each, untrusted text in
  // it; called without a lock, from any thread. Unset: nothing.
  std::function<void(const std::string& line)> on_event;
};

class Coordinator final : public WorkerApi, public ClientApi {
 public:
  // `store` and `clock` outlive the coordinator. Writes the new incarnation before it returns.
  static absl::StatusOr<std::unique_ptr<Coordinator>> Open(Store* store, Clock* clock, BenchmarkOpener open,
                                                           CoordinatorConfig config);

  // One step of the background loop: rescues expired leases, computes values of finished jobs. main calls it about
  // once a second, tests by hand.
  absl::Status Tick();
  // From now on workers are bound to, granted and told of this sweep alone; all_done means that it is done. For a run
  // that brings its own workers to a database that may hold other, interrupted sweeps.
  void ServeOnly(const SweepId& sweep);

  absl::StatusOr<RegisterWorkerReply> RegisterWorker(const RegisterWorkerRequest& request) override;
  absl::StatusOr<OfferModelsReply> OfferModels(const OfferModelsRequest& request) override;
  absl::StatusOr<AcquireLeaseReply> AcquireLease(const AcquireLeaseRequest& request) override;
  absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest& request) override;
  absl::StatusOr<LookupGenerationsReply> LookupGenerations(const LookupGenerationsRequest& request) override;
  absl::StatusOr<PutGenerationsReply> PutGenerations(const PutGenerationsRequest& request) override;
  absl::StatusOr<CommitItemsReply> CommitItems(const CommitItemsRequest& request) override;
  absl::Status ReleaseLease(const ReleaseLeaseRequest& request) override;

  absl::StatusOr<SweepId> Submit(const SweepSpec& spec) override;
  absl::StatusOr<SweepProgress> Status(const SweepId& sweep) override;
  absl::StatusOr<std::vector<SweepSummary>> List() override;
  absl::Status Cancel(const SweepId& sweep) override;
  absl::StatusOr<std::string> Table(const SweepId& sweep, const std::string& layout, const std::string& baseline,
                                    const std::string& format) override;

  int64_t incarnation() const { return incarnation_; }

 private:
  struct Seen {  // what heartbeats say; display only
    absl::Duration at;
    double tokens_per_second = 0;
  };

  Coordinator(Store* store, Clock* clock, BenchmarkOpener open, CoordinatorConfig config);
  absl::Status Start();
  absl::Status CheckStore();
  absl::Status RescueExpired();
  absl::Status RescueOne(const Lease& lease, AttemptEnd end, bool permanent, const std::string& reason, absl::Time at);
  absl::Status FillInValues();
  std::optional<SweepId> OnlySweep();
  absl::Status FillInValuesOf(const SweepRecord& sweep);
  absl::Status GrantIn(WriteTxn& txn, const AcquireLeaseRequest& request, AcquireLeaseReply* reply);
  absl::StatusOr<LeaseGrant> DescribeGrant(WriteTxn& txn, const ShardRecord& shard);
  absl::Status NoteUnfit(const ReleaseLeaseRequest& request);
  template <class... Args>
  void Tell(fmt::format_string<Args...> format, Args&&... args) const {
    if (config_.on_event) config_.on_event(fmt::format(format, std::forward<Args>(args)...));
  }

  Store& store_;
  Clock& clock_;
  const CoordinatorConfig config_;
  BenchmarkPool benchmarks_;
  ResultIngest ingest_;
  int64_t incarnation_ = 0;  // set by Start, constant afterwards

  absl::Mutex mu_;
  LeaseBook book_ ABSL_GUARDED_BY(mu_);
  std::map<WorkerId, Seen> seen_ ABSL_GUARDED_BY(mu_);
  bool values_due_ ABSL_GUARDED_BY(mu_) = true;  // some job may have become final
  std::optional<SweepId> only_sweep_ ABSL_GUARDED_BY(mu_);
};

}  // namespace iha::coordinator
