// Start-up and the background step of the Coordinator.
#include "coordinator/coordinator.h"

#include <charconv>

#include "common/errors.h"
#include "common/status_macros.h"
#include "coordinator/rescue/rescuer.h"
#include "coordinator/store/invariants.h"
#include "coordinator/store/snapshot_reader.h"

namespace iha::coordinator {
namespace {

int64_t ParseCounter(const std::optional<std::string>& text) {
  int64_t value = 0;
  if (text.has_value()) std::from_chars(text->data(), text->data() + text->size(), value);
  return value;
}

// Names the state of a whole sweep's rows: its average ranks are keyed by it.
Digest DigestOf(const std::vector<Digest>& job_digests) {
  Sha256 sha;
  for (const Digest& digest : job_digests) {
    sha.Update(std::string_view(reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size()));
  }
  return sha.Finish();
}

}  // namespace

Coordinator::Coordinator(Store* store, Clock* clock, BenchmarkOpener open, CoordinatorConfig config)
    : store_(*store),
      clock_(*clock),
      config_(std::move(config)),
      benchmarks_(std::move(open)),
      ingest_(store, &benchmarks_, clock, config_.regrade),
      book_(config_.lease) {}

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::Open(Store* store, Clock* clock, BenchmarkOpener open,
                                                               CoordinatorConfig config) {
  std::unique_ptr<Coordinator> coordinator(new Coordinator(store, clock, std::move(open), std::move(config)));
  IHA_RETURN_IF_ERROR(coordinator->Start());
  return coordinator;
}

absl::Status Coordinator::CheckStore() {
  IHA_ASSIGN_OR_RETURN(const std::vector<std::string> violations, CheckInvariants(store_, &benchmarks::EntryValues));
  if (violations.empty()) return absl::OkStatus();
  return DataLoss("{}: {} invariants broken, the first is {}; run `iha-eval fsck` and restore a backup", store_.path(),
                  violations.size(), violations.front());
}

absl::Status Coordinator::Start() {
  if (config_.check_at_start) IHA_RETURN_IF_ERROR(CheckStore());
  // Synced before any grant of this life: a grant that a power cut took back can never come again with an equal fence.
  IHA_RETURN_IF_ERROR(store_.Write([&](WriteTxn& txn) -> absl::Status {
    IHA_ASSIGN_OR_RETURN(const std::optional<std::string> last, txn.Meta("incarnation"));
    incarnation_ = ParseCounter(last) + 1;
    return txn.SetMeta("incarnation", fmt::format("{}", incarnation_));
  }));
  std::vector<Lease> live;
  IHA_RETURN_IF_ERROR(store_.Read([&](ReadTxn& txn) -> absl::Status {
    live.clear();
    IHA_ASSIGN_OR_RETURN(const std::vector<ShardRecord> shards, txn.LeasedShards());
    for (const ShardRecord& shard : shards) {
      IHA_ASSIGN_OR_RETURN(const std::optional<JobRecord> job, txn.FindJob(shard.job));
      live.push_back({.shard = shard.id,
                      .job = shard.job,
                      .worker = shard.owner,
                      .fence = shard.fence,
                      .deadline = {},
                      .cancelled = job.has_value() && job->cancel_requested});
    }
    return absl::OkStatus();
  }));
  {
    absl::MutexLock lock(&mu_);
    for (const Lease& lease : live) book_.Restore(lease, clock_.Elapsed());
  }
  return FillInValues();
}

absl::Status Coordinator::Tick() {
  absl::Status rescued = RescueExpired();
  const absl::Status filled = FillInValues();
  return rescued.ok() ? filled : rescued;
}

void Coordinator::ServeOnly(const SweepId& sweep) {
  absl::MutexLock lock(&mu_);
  only_sweep_ = sweep;
}

std::optional<SweepId> Coordinator::OnlySweep() {
  absl::MutexLock lock(&mu_);
  return only_sweep_;
}

absl::Status Coordinator::RescueExpired() {
  absl::Status first;
  std::vector<Lease> expired;
  const absl::Duration elapsed = clock_.Elapsed();
  {
    absl::MutexLock lock(&mu_);
    expired = book_.ExpiredAt(elapsed);
  }
  for (const Lease& lease : expired) {
    const std::string reason = fmt::format("lease expired: no heartbeat from {} for {} s", lease.worker.value,
                                           absl::ToInt64Seconds(config_.lease.ttl));
    // One that cannot be rescued now is tried again later; it must not keep the others waiting.
    first.Update(RescueOne(lease, AttemptEnd::kLost, false, reason, clock_.Now() - (elapsed - lease.deadline)));
  }
  return first;
}

absl::Status Coordinator::RescueOne(const Lease& lease, AttemptEnd end, bool permanent, const std::string& reason,
                                    absl::Time at) {
  IHA_RETURN_IF_ERROR(store_.Write([&](WriteTxn& txn) -> absl::Status {
    IHA_ASSIGN_OR_RETURN(const std::optional<ShardRecord> shard, txn.FindShard(lease.shard));
    if (!shard.has_value()) return NotFound("shard {}: not in this database", static_cast<int64_t>(lease.shard));
    // Finished, released or granted anew meanwhile: this attempt has ended already, nothing is left to do.
    if (shard->state != ShardState::kLeased || shard->fence != lease.fence || shard->owner != lease.worker) {
      return absl::OkStatus();
    }
    return Rescue(txn, {.shard = *shard, .end = end, .permanent = permanent, .reason = reason, .at = at},
                  config_.rescue, &benchmarks_)
        .status();
  }));
  absl::MutexLock lock(&mu_);
  book_.End(lease.shard, lease.fence);
  values_due_ = true;
  return absl::OkStatus();
}

absl::Status Coordinator::FillInValues() {
  {
    absl::MutexLock lock(&mu_);
    if (!values_due_ || !config_.metric_values) return absl::OkStatus();
    values_due_ = false;
  }
  std::vector<SweepRecord> sweeps;
  IHA_RETURN_IF_ERROR(store_.Read([&](ReadTxn& txn) -> absl::Status {
    IHA_ASSIGN_OR_RETURN(sweeps, txn.Sweeps());
    return absl::OkStatus();
  }));
  for (const SweepRecord& sweep : sweeps) {
    const absl::Status status = FillInValuesOf(sweep);
    if (status.ok()) continue;
    absl::MutexLock lock(&mu_);
    values_due_ = true;  // the next Tick tries again
    return status;
  }
  return absl::OkStatus();
}

absl::Status Coordinator::FillInValuesOf(const SweepRecord& sweep) {
  std::vector<size_t> due;      // final jobs without their rows
  std::vector<Digest> digests;  // of each job's rows
  bool all_final = true;
  bool ranked = false;
  IHA_RETURN_IF_ERROR(store_.Read([&](ReadTxn& txn) -> absl::Status {
    due.clear();
    digests.clear();
    all_final = true;
    IHA_ASSIGN_OR_RETURN(const std::vector<JobRecord> jobs, txn.Jobs(sweep.id));
    for (size_t j = 0; j < jobs.size(); ++j) {
      IHA_ASSIGN_OR_RETURN(const JobCounts counts, txn.Counts(jobs[j].id));
      IHA_ASSIGN_OR_RETURN(digests.emplace_back(), txn.ItemsDigest(jobs[j].id));
      all_final = all_final && counts.open_shards == 0;
      IHA_ASSIGN_OR_RETURN(const std::vector<MetricValueRecord> values, txn.MetricValues(jobs[j].id));
      const bool has_rows = std::any_of(values.begin(), values.end(), [&](const MetricValueRecord& v) {
        return v.grader_version == jobs[j].spec.grader_version && v.items_digest == digests.back();
      });
      if (counts.open_shards == 0 && !has_rows) due.push_back(j);
    }
    IHA_ASSIGN_OR_RETURN(const std::vector<AverageRankRecord> ranks, txn.AverageRanks(sweep.id));
    const Digest state = DigestOf(digests);
    ranked = std::any_of(ranks.begin(), ranks.end(), [&](const auto& r) { return r.items_digest == state; });
    return absl::OkStatus();
  }));
  const bool rank_due = all_final && !ranked && config_.average_ranks != nullptr;
  if (due.empty() && !rank_due) return absl::OkStatus();
  IHA_ASSIGN_OR_RETURN(const reports::Snapshot snapshot, ReadSnapshot(store_, sweep.id, config_.version));
  std::vector<MetricValueRecord> values;
  for (const size_t j : due) {
    IHA_ASSIGN_OR_RETURN(std::vector<MetricValueRecord> rows, config_.metric_values(snapshot, j));
    for (MetricValueRecord& row : rows) {
      row.job = snapshot.jobs[j].id;
      row.grader_version = snapshot.jobs[j].spec.grader_version;
      row.items_digest = digests[j];
      values.push_back(std::move(row));
    }
  }
  std::vector<AverageRankRecord> ranks;
  if (rank_due) {
    IHA_ASSIGN_OR_RETURN(ranks, config_.average_ranks(snapshot));
    for (AverageRankRecord& rank : ranks) {
      rank.sweep = sweep.id;
      rank.items_digest = DigestOf(digests);
    }
  }
  IHA_RETURN_IF_ERROR(store_.Write([&](WriteTxn& txn) -> absl::Status {
    for (const MetricValueRecord& value : values) IHA_RETURN_IF_ERROR(txn.PutMetricValue(value));
    for (const AverageRankRecord& rank : ranks) IHA_RETURN_IF_ERROR(txn.PutAverageRank(rank));
    return absl::OkStatus();
  }));
  if (rank_due) Tell("sweep {}: all jobs have ended", sweep.id.Hex().substr(0, 16));
  return absl::OkStatus();
}

}  // namespace iha::coordinator
