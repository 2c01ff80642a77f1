#include "coordinator/summary.h"

#include <algorithm>

#include "common/status_macros.h"

namespace iha::coordinator {
namespace {

bool Bound(const std::vector<ModelBinding>& bindings, const std::string& model) {
  return std::any_of(bindings.begin(), bindings.end(), [&](const ModelBinding& b) { return b.model == model; });
}

absl::StatusOr<SweepSummary> Summarize(ReadTxn& txn, const SweepRecord& sweep) {
  SweepSummary summary{.sweep = sweep.id, .state = "", .run_tag = sweep.spec.run_tag, .submitted = sweep.submitted};
  IHA_ASSIGN_OR_RETURN(const std::vector<JobRecord> jobs, txn.Jobs(sweep.id));
  IHA_ASSIGN_OR_RETURN(const std::vector<ModelBinding> bindings, txn.Bindings(sweep.id));
  std::vector<JobState> states;
  for (const JobRecord& job : jobs) {
    IHA_ASSIGN_OR_RETURN(const JobCounts counts, txn.Counts(job.id));
    states.push_back(StateOf(job, counts, bindings));
    summary.planned += job.spec.items;
    summary.finished += counts.scored + counts.unscored;
  }
  summary.state = SweepState(states);
  return summary;
}

}  // namespace

JobState StateOf(const JobRecord& job, const JobCounts& counts, const std::vector<ModelBinding>& bindings) {
  return Derive({.model_bound = Bound(bindings, job.spec.model.name),
                 .cancel_requested = job.cancel_requested,
                 .open_shards = counts.open_shards > 0});
}

std::string SweepState(const std::vector<JobState>& jobs) {
  bool done = true;
  for (const JobState state : jobs) {
    if (state == JobState::kCancelling || state == JobState::kCancelled) return "cancelled";
    done = done && state == JobState::kDone;
  }
  return done ? "done" : "running";
}

absl::StatusOr<std::vector<SweepSummary>> Summaries(ReadTxn& txn) {
  std::vector<SweepSummary> summaries;
  IHA_ASSIGN_OR_RETURN(const std::vector<SweepRecord> sweeps, txn.Sweeps());
  for (const SweepRecord& sweep : sweeps) {
    IHA_ASSIGN_OR_RETURN(SweepSummary summary, Summarize(txn, sweep));
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

}  // namespace iha::coordinator
