// sqlite_txn.h: the transaction interface over one connection; one .cc for each concern (work, workers, results).
// The caller opens and ends the SQL transaction; this class only runs statements. Used inside store/ only.
#pragma once

#include "coordinator/store/sqlite_connection.h"
#include "coordinator/store/store.h"

namespace iha::coordinator {

class SqliteTxn final : public WriteTxn {
 public:
  explicit SqliteTxn(Connection* db) : db_(*db) {}

  // sqlite_txn_work.cc
  ListOr<std::string> DamagedPages() override;
  MaybeOr<std::string> Meta(const std::string& key) override;
  MaybeOr<SweepRecord> FindSweep(const SweepId& id) override;
  ListOr<SweepRecord> Sweeps() override;
  ListOr<JobRecord> Jobs(const SweepId& sweep) override;
  MaybeOr<JobRecord> FindJob(const JobId& id) override;
  absl::StatusOr<JobCounts> Counts(const JobId& job) override;
  absl::Status SetMeta(const std::string& key, const std::string& value) override;
  absl::Status InsertSweep(const SweepRecord& sweep, const std::vector<NewJob>& jobs) override;
  absl::Status RequestCancel(const JobId& job) override;

  // sqlite_txn_shards.cc
  MaybeOr<ShardRecord> FindShard(ShardId id) override;
  ListOr<ShardRecord> Shards(const JobId& job) override;
  ListOr<ShardRecord> LeasedShards() override;
  MaybeOr<ShardId> PickShard(const GrantQuery& query) override;
  absl::StatusOr<OpenWork> FindOpenWork(const std::optional<SweepId>& only,
                                        const std::vector<std::string>& refused) override;
  ListOr<AttemptRecord> Attempts(ShardId shard) override;
  ListOr<AttemptRecord> AttemptsOf(const WorkerId& worker) override;
  MaybeOr<AttemptRecord> FindGrant(const WorkerId& worker, const RequestId& request) override;
  absl::Status GrantShard(const ShardRecord& shard, const Fence& fence, const WorkerId& owner) override;
  absl::Status MoveShard(const ShardRecord& shard, ShardState to, absl::Time not_before) override;
  absl::Status InsertChild(const ShardRecord& parent, const NewShard& child) override;
  absl::Status AppendAttempt(const AttemptRecord& attempt) override;

  // sqlite_txn_workers.cc
  MaybeOr<WorkerRecord> FindWorker(const WorkerId& id) override;
  ListOr<OpenModel> OpenModels() override;
  ListOr<ModelBinding> Bindings(const SweepId& sweep) override;
  ListOr<ModelBinding> Offers(const WorkerId& worker) override;
  ListOr<std::string> Notes(const SweepId& sweep) override;
  ListOr<DivergenceRecord> Divergences() override;
  absl::Status UpsertWorker(const WorkerRecord& worker) override;
  absl::Status BlameWorker(const WorkerId& worker, const std::string& reason) override;
  absl::Status RecordOffer(const WorkerId& worker, const ModelBinding& offer) override;
  absl::Status BindModel(const ModelBinding& binding) override;
  absl::Status AddNote(const SweepId& sweep, const std::string& note) override;
  absl::Status AddDivergence(const DivergenceRecord& divergence) override;

  // sqlite_txn_rows.cc
  ListOr<reports::ItemRow> ItemRows(const JobRecord& job) override;
  ListOr<MetricValueRecord> MetricValues(const JobId& job) override;
  ListOr<AverageRankRecord> AverageRanks(const SweepId& sweep) override;
  absl::Status PutMetricValue(const MetricValueRecord& value) override;
  absl::Status PutAverageRank(const AverageRankRecord& rank) override;

  // sqlite_txn_telemetry.cc
  ListOr<TelemetryRecord> Telemetry(const JobId& job) override;
  absl::Status PutTelemetry(const TelemetryRecord& record) override;

  // sqlite_txn_results.cc
  ListOr<int64_t> MissingItems(const JobId& job, ItemRange range) override;
  MaybeOr<Digest> ItemHash(const JobId& job, int64_t item) override;
  MaybeOr<ItemResult> LoadItem(const JobId& job, int64_t item) override;
  MaybeOr<ItemResult> LoadItemGraded(const JobId& job, int64_t item, const std::string& grader_version) override;
  ListOr<std::string> GraderVersions(const JobId& job) override;
  ListOr<int64_t> StoredItems(const JobId& job) override;
  absl::StatusOr<Digest> ItemsDigest(const JobId& job) override;
  MaybeOr<StoredGeneration> FindGeneration(const GenKey& key) override;
  absl::Status InsertGeneration(const Generation& generation) override;
  absl::Status RepairGeneration(const Generation& generation) override;
  absl::Status InsertItem(const JobId& job, const std::string& grader_version, const ItemResult& item) override;
  absl::Status InsertGrades(const JobId& job, const std::string& grader_version, const ItemResult& item) override;

  Connection& connection() { return db_; }

 private:
  // Aborted unless the last statement changed exactly one row.
  absl::Status ExactlyOne(const ShardRecord& shard) const;
  ListOr<ShardRecord> ReadShards(Statement* query);
  ListOr<AttemptRecord> ReadAttempts(Statement* query);

  Connection& db_;
};

}  // namespace iha::coordinator
