// outputs.h: the files of a finished (or interrupted) run, each written whole: table.md, table.csv, table.json,
// table.html, samples.jsonl and run.json (docs/formats.md). All but run.json depend on the stored rows only. Blocking.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/run/telemetry_report.h"
#include "coordinator/store/store.h"
#include "reports/table.h"

namespace iha::cli {

// What differs between equal runs, for run.json.
struct RunRecord {
  absl::Time started;
  absl::Time ended;
  int workers = 0;
  int worker_restarts = 0;
  int threads = 0;
  std::string db;
  std::string command;
  SweepTelemetry telemetry;
  std::optional<EngineBuild> engine;  // nullopt: iha-tool did not say
  std::optional<MachinePeak> machine_peak;
};

// Writes all six into `folder` (made if absent); returns the table that they show.
absl::StatusOr<reports::Table> WriteOutputs(coordinator::Store& store, const SweepId& sweep,
                                            const reports::TableOptions& options, const std::string& folder,
                                            const RunRecord& record);

// samples.jsonl as text: one line a sample, jobs in table order, items increasing, samples in order.
absl::StatusOr<std::string> SamplesJsonl(coordinator::Store& store, const SweepId& sweep);

}  // namespace iha::cli
