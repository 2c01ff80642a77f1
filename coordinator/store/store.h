// store.h: the durable state of the coordinator as transactions over domain records. SQL stops behind this header.
//
// Policy stands in the callers (ingest, rescue, coordinator): they compose the small reads and writes below inside one
// transaction. The store itself guards what must hold whoever calls: transition triggers, CHECKs, foreign keys.
// Thread: Store: any. A transaction object belongs to the function it was passed to. Errors: ResourceExhausted (disk
// full or queue full: try again later), Unavailable (busy: try again), DataLoss (file corrupt: restore a backup),
// FailedPrecondition (read-only: fix permissions), Internal (a constraint was broken: our bug; nothing was written).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/store/records.h"
#include "reports/snapshot.h"

namespace iha::coordinator {

template <class T>
using MaybeOr = absl::StatusOr<std::optional<T>>;
template <class T>
using ListOr = absl::StatusOr<std::vector<T>>;

// What a worker may be granted now.
struct GrantQuery {
  WorkerId worker;                  // its stored offers must equal the sweep's binding
  std::vector<std::string> models;  // the first is preferred
  std::vector<std::string> numerics_ids;
  absl::Time now;
  std::optional<SweepId> only = std::nullopt;  // set: shards of this sweep alone
  std::vector<std::string> refused_benchmarks = {};
};
struct OpenWork {
  bool any = false;                 // some shard of some job is PENDING or LEASED
  std::vector<std::string> models;  // names of unfinished jobs, sorted
  absl::Time next_retry;            // earliest not_before of a PENDING shard; InfiniteFuture if none
};

class ReadTxn {
 public:
  virtual ~ReadTxn() = default;

  virtual ListOr<std::string> DamagedPages() = 0;  // what the file format's own check finds; reads the whole file
  virtual MaybeOr<std::string> Meta(const std::string& key) = 0;
  virtual MaybeOr<SweepRecord> FindSweep(const SweepId& id) = 0;
  virtual ListOr<SweepRecord> Sweeps() = 0;                  // in order of submission
  virtual ListOr<JobRecord> Jobs(const SweepId& sweep) = 0;  // model-major
  virtual MaybeOr<JobRecord> FindJob(const JobId& id) = 0;
  virtual absl::StatusOr<JobCounts> Counts(const JobId& job) = 0;

  virtual MaybeOr<ShardRecord> FindShard(ShardId id) = 0;
  virtual ListOr<ShardRecord> Shards(const JobId& job) = 0;  // by id
  virtual ListOr<ShardRecord> LeasedShards() = 0;            // of all jobs
  virtual MaybeOr<ShardId> PickShard(const GrantQuery& query) = 0;
  // Absent: of all sweeps. `models` are those of jobs whose benchmark is not among `refused`.
  virtual absl::StatusOr<OpenWork> FindOpenWork(const std::optional<SweepId>& only,
                                                const std::vector<std::string>& refused) = 0;
  virtual ListOr<AttemptRecord> Attempts(ShardId shard) = 0;  // oldest first
  virtual ListOr<AttemptRecord> AttemptsOf(const WorkerId& worker) = 0;
  virtual MaybeOr<AttemptRecord> FindGrant(const WorkerId& worker, const RequestId& request) = 0;

  virtual MaybeOr<WorkerRecord> FindWorker(const WorkerId& id) = 0;
  virtual ListOr<OpenModel> OpenModels() = 0;  // sweeps in order of submission, cancelled jobs left out
  virtual ListOr<ModelBinding> Bindings(const SweepId& sweep) = 0;
  virtual ListOr<ModelBinding> Offers(const WorkerId& worker) = 0;  // `sweep` unset
  virtual ListOr<std::string> Notes(const SweepId& sweep) = 0;
  virtual ListOr<DivergenceRecord> Divergences() = 0;

  virtual ListOr<int64_t> MissingItems(const JobId& job, ItemRange range) = 0;
  virtual MaybeOr<Digest> ItemHash(const JobId& job, int64_t item) = 0;
  virtual MaybeOr<ItemResult> LoadItem(const JobId& job, int64_t item) = 0;
  // The same item as a later grading sees it; without grades and values where that version has none.
  virtual MaybeOr<ItemResult> LoadItemGraded(const JobId& job, int64_t item, const std::string& grader_version) = 0;
  virtual ListOr<std::string> GraderVersions(const JobId& job) = 0;  // of its stored values, sorted
  virtual ListOr<int64_t> StoredItems(const JobId& job) = 0;
  virtual absl::StatusOr<Digest> ItemsDigest(const JobId& job) = 0;  // of all item hashes, in order
  // The stored row, with the checksum column beside it: the caller compares (a bad checksum is a miss plus an alarm).
  struct StoredGeneration {
    Generation generation;
    Digest checksum;
  };
  virtual MaybeOr<StoredGeneration> FindGeneration(const GenKey& key) = 0;
  virtual ListOr<reports::ItemRow> ItemRows(const JobRecord& job) = 0;  // as snapshots show them
  virtual ListOr<MetricValueRecord> MetricValues(const JobId& job) = 0;
  virtual ListOr<AverageRankRecord> AverageRanks(const SweepId& sweep) = 0;
  virtual ListOr<TelemetryRecord> Telemetry(const JobId& job) = 0;  // one a worker process, by name and incarnation
};

class WriteTxn : public ReadTxn {
 public:
  virtual absl::Status SetMeta(const std::string& key, const std::string& value) = 0;
  virtual absl::Status InsertSweep(const SweepRecord& sweep, const std::vector<NewJob>& jobs) = 0;
  virtual absl::Status RequestCancel(const JobId& job) = 0;

  // Guarded updates: the row must be in `shard.state` with `shard.fence`, else Aborted and nothing is written.
  virtual absl::Status GrantShard(const ShardRecord& shard, const Fence& fence, const WorkerId& owner) = 0;
  // `to` other than LEASED; the owner is cleared, the fence stays.
  virtual absl::Status MoveShard(const ShardRecord& shard, ShardState to, absl::Time not_before) = 0;
  virtual absl::Status InsertChild(const ShardRecord& parent, const NewShard& child) = 0;
  virtual absl::Status AppendAttempt(const AttemptRecord& attempt) = 0;

  virtual absl::Status UpsertWorker(const WorkerRecord& worker) = 0;  // a new incarnation forgets its offers
  virtual absl::Status BlameWorker(const WorkerId& worker, const std::string& reason) = 0;
  virtual absl::Status RecordOffer(const WorkerId& worker, const ModelBinding& offer) = 0;
  virtual absl::Status BindModel(const ModelBinding& binding) = 0;
  virtual absl::Status AddNote(const SweepId& sweep, const std::string& note) = 0;  // once each
  virtual absl::Status AddDivergence(const DivergenceRecord& divergence) = 0;       // once each

  virtual absl::Status InsertGeneration(const Generation& generation) = 0;
  // Replaces a row that does not match its own checksum by the value that does.
  virtual absl::Status RepairGeneration(const Generation& generation) = 0;
  virtual absl::Status InsertItem(const JobId& job, const std::string& grader_version, const ItemResult& item) = 0;
  // Grades and values of a stored item under another version: rows beside the first ones, which stay.
  virtual absl::Status InsertGrades(const JobId& job, const std::string& grader_version, const ItemResult& item) = 0;
  virtual absl::Status PutMetricValue(const MetricValueRecord& value) = 0;
  virtual absl::Status PutAverageRank(const AverageRankRecord& rank) = 0;
  // Takes the place of the process' earlier report on the job; an older or equal one changes nothing.
  virtual absl::Status PutTelemetry(const TelemetryRecord& record) = 0;
};

class Store {
 public:
  virtual ~Store() = default;
  // Runs `fn` on the writer thread and returns when its effects are durable. A non-OK result of `fn` undoes all that it
  // wrote. `fn` may run again if the group it was committed with had to be undone, so it must only touch its own
  // results.
  virtual absl::Status Write(const std::function<absl::Status(WriteTxn&)>& fn) = 0;
  // As Write, but ResourceExhausted at once when the queue is past its high mark (ingest's backpressure).
  virtual absl::Status TryWrite(const std::function<absl::Status(WriteTxn&)>& fn) = 0;
  // Runs `fn` on the calling thread in one read transaction.
  virtual absl::Status Read(const std::function<absl::Status(ReadTxn&)>& fn) = 0;
  virtual const std::string& path() const = 0;
};

}  // namespace iha::coordinator
