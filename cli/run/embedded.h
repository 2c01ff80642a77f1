// embedded.h: `iha-eval run`: coordinator in this process on a Unix socket, local worker processes, one database file.
//
// Resumes: a sweep is its spec, so the same flags on the same database go on where they stopped, and a finished sweep
// starts no worker. Ctrl-C drains the workers and leaves a resumable database. Call from the main thread. Blocking.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/command.h"
#include "cli/run/run_flags.h"
#include "cli/run/telemetry_report.h"
#include "common/eval_types.h"
#include "reports/gate_sequential.h"
#include "reports/table.h"

namespace iha::cli {

struct RunOutcome {
  SweepId sweep;
  reports::Table table;
  SweepTelemetry telemetry;         // of all its workers, earlier runs of the same sweep included
  std::optional<MachinePeak> peak;  // of --profile, where operations were noted
  bool interrupted = false;
  std::optional<reports::SequentialReport> verdict;  // of --sequential-gate
  int64_t finished = 0;                              // its items, whether or not the verdict needed them
  int64_t planned = 0;
};

// With --sequential-gate the sweep is cancelled once the verdict is certain; called again, it gives that verdict anew.
// `folders`: model name -> directory. Errors: Unavailable (workers die again and again; the last reason), the
// coordinator's, FailedPrecondition (a model was refused: its weights are not those of the stored sweep;
// with --sequential-gate: not comparable with the baseline, before anything is stored).
absl::StatusOr<RunOutcome> RunEmbedded(const Command& command, const RunFlags& flags, const SweepSpec& spec,
                                       const std::map<std::string, std::string>& folders);

}  // namespace iha::cli
