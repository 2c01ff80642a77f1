// The client's side of the Coordinator: submit, status, list, cancel, table.
#include "common/counted.h"
#include "common/errors.h"
#include "common/status_macros.h"
#include "coordinator/coordinator.h"
#include "coordinator/lease/transition.h"
#include "coordinator/store/snapshot_reader.h"
#include "coordinator/summary.h"
#include "reports/table.h"

namespace iha::coordinator {
namespace {

// A worker that has said nothing for this many heartbeats is not shown as live.
constexpr int kLiveHeartbeats = 3;

std::string ShortId(const SweepId& id) { return id.Hex().substr(0, 16); }

}  // namespace

absl::StatusOr<SweepId> Coordinator::Submit(const SweepSpec& spec) {
  IHA_ASSIGN_OR_RETURN(const SweepPlan plan, Plan(spec, benchmarks_.opener()));
  bool is_new = false;
  IHA_RETURN_IF_ERROR(store_.Write([&](WriteTxn& txn) -> absl::Status {
    IHA_ASSIGN_OR_RETURN(const std::optional<SweepRecord> known, txn.FindSweep(plan.id));
    is_new = !known.has_value();
    if (is_new) {
      return txn.InsertSweep({.id = plan.id, .spec = plan.spec, .submitted = clock_.Now()}, plan.jobs);
    }
    // The id covers the request; data or prompts that changed since give other jobs under the same id.
    IHA_ASSIGN_OR_RETURN(const std::vector<JobRecord> jobs, txn.Jobs(plan.id));
    for (size_t j = 0; j < jobs.size() && j < plan.jobs.size(); ++j) {
      if (jobs[j].id == plan.jobs[j].id) continue;
      return FailedPrecondition(
          "sweep {}: {} was planned with other data, prompts or graders than this program has; "
          "restore them, or submit with another run tag",
          plan.id.Hex(), benchmarks::ToString(plan.jobs[j].spec.entry.benchmark));
    }
    const bool cancelled =
        std::any_of(jobs.begin(), jobs.end(), [](const JobRecord& job) { return job.cancel_requested; });
    if (!cancelled) return absl::OkStatus();
    return FailedPrecondition("sweep {}: was cancelled; submit with another run tag to run it anew", plan.id.Hex());
  }));
  if (is_new) {
    int64_t items = 0;
    for (const NewJob& job : plan.jobs) items += job.spec.items;
    Tell("sweep {}: submitted: {} x {}, {}", ShortId(plan.id), CountedSize(plan.spec.models, "model"),
         Counted(static_cast<int64_t>(plan.spec.entries.size()), "entry", "entries"), Counted(items, "item"));
  }
  return plan.id;
}

absl::StatusOr<SweepProgress> Coordinator::Status(const SweepId& sweep) {
  SweepProgress progress;
  IHA_RETURN_IF_ERROR(store_.Read([&](ReadTxn& txn) -> absl::Status {
    progress = {};
    progress.sweep = sweep;
    IHA_ASSIGN_OR_RETURN(const std::optional<SweepRecord> record, txn.FindSweep(sweep));
    if (!record.has_value()) return NotFound("sweep {}: not in this database", sweep.Hex());
    IHA_ASSIGN_OR_RETURN(const std::vector<JobRecord> jobs, txn.Jobs(sweep));
    IHA_ASSIGN_OR_RETURN(const std::vector<ModelBinding> bindings, txn.Bindings(sweep));
    IHA_ASSIGN_OR_RETURN(progress.notes, txn.Notes(sweep));
    std::vector<JobState> states;
    for (const JobRecord& job : jobs) {
      IHA_ASSIGN_OR_RETURN(const JobCounts counts, txn.Counts(job.id));
      states.push_back(StateOf(job, counts, bindings));
      progress.leased_shards += counts.leased_shards;
      progress.jobs.push_back({.job = job.id,
                               .model = job.spec.model.name,
                               .entry = reports::Describe(job.spec.entry),
                               .state = NameOf(states.back()),
                               .planned = job.spec.items,
                               .scored = counts.scored,
                               .unscored = counts.unscored});
    }
    progress.state = SweepState(states);
    IHA_ASSIGN_OR_RETURN(const std::vector<DivergenceRecord> divergences, txn.Divergences());
    for (const DivergenceRecord& row : divergences) {
      progress.notes.push_back(fmt::format("determinism alarm: {} {}: stored {}, {} offered {}", NameOf(row.kind),
                                           row.subject, row.stored.Hex().substr(0, 12), row.worker.value,
                                           row.offered.Hex().substr(0, 12)));
    }
    return absl::OkStatus();
  }));
  absl::MutexLock lock(&mu_);
  for (const auto& [worker, seen] : seen_) {
    if (clock_.Elapsed() - seen.at > kLiveHeartbeats * config_.lease.heartbeat_interval) continue;
    ++progress.live_workers;
    progress.tokens_per_second += seen.tokens_per_second;
  }
  return progress;
}

absl::StatusOr<std::vector<SweepSummary>> Coordinator::List() {
  std::vector<SweepSummary> summaries;
  IHA_RETURN_IF_ERROR(store_.Read([&](ReadTxn& txn) -> absl::Status {
    IHA_ASSIGN_OR_RETURN(summaries, Summaries(txn));
    return absl::OkStatus();
  }));
  return summaries;
}

absl::Status Coordinator::Cancel(const SweepId& sweep) {
  std::vector<JobId> cancelled;
  IHA_RETURN_IF_ERROR(store_.Write([&](WriteTxn& txn) -> absl::Status {
    cancelled.clear();
    IHA_ASSIGN_OR_RETURN(const std::optional<SweepRecord> record, txn.FindSweep(sweep));
    if (!record.has_value()) return NotFound("sweep {}: not in this database", sweep.Hex());
    IHA_ASSIGN_OR_RETURN(const std::vector<JobRecord> jobs, txn.Jobs(sweep));
    for (const JobRecord& job : jobs) {
      IHA_ASSIGN_OR_RETURN(const JobCounts counts, txn.Counts(job.id));
      if (counts.open_shards == 0) continue;  // finished work stays finished
      IHA_RETURN_IF_ERROR(txn.RequestCancel(job.id));
      IHA_ASSIGN_OR_RETURN(const std::vector<ShardRecord> shards, txn.Shards(job.id));
      for (const ShardRecord& shard : shards) {
        // Leased ones end when their worker hears of it, or when the lease runs out.
        if (shard.state == ShardState::kPending) IHA_RETURN_IF_ERROR(Transition(txn, shard, ShardEvent::kCancel));
      }
      cancelled.push_back(job.id);
    }
    return absl::OkStatus();
  }));
  if (!cancelled.empty()) Tell("sweep {}: cancelled, {} unfinished jobs", ShortId(sweep), cancelled.size());
  absl::MutexLock lock(&mu_);
  for (const JobId& job : cancelled) book_.Cancel(job);
  if (!cancelled.empty()) values_due_ = true;  // those without a leased shard are final now
  return absl::OkStatus();
}

absl::StatusOr<std::string> Coordinator::Table(const SweepId& sweep, const std::string& layout,
                                               const std::string& baseline, const std::string& format) {
  if (!config_.render_table) return Unimplemented("this coordinator renders no tables");
  IHA_ASSIGN_OR_RETURN(const reports::Snapshot snapshot, ReadSnapshot(store_, sweep, config_.version));
  return config_.render_table(snapshot, layout, baseline, format);
}

}  // namespace iha::coordinator
