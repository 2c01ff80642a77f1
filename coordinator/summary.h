// summary.h: what a client sees of a sweep, told from its rows: for the Coordinator and for programs that read a file.
// Thread: that of the transaction. Errors: those of the store.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/coordinator_api.h"
#include "coordinator/state/job_machine.h"
#include "coordinator/store/store.h"

namespace iha::coordinator {

JobState StateOf(const JobRecord& job, const JobCounts& counts, const std::vector<ModelBinding>& bindings);

// "cancelled" if any job was, "done" if all are, else "running".
std::string SweepState(const std::vector<JobState>& jobs);

// All sweeps of the database, in order of submission.
absl::StatusOr<std::vector<SweepSummary>> Summaries(ReadTxn& txn);

}  // namespace iha::coordinator
