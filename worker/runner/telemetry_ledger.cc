#include "worker/runner/telemetry_ledger.h"

namespace iha::worker {

JobTelemetry TelemetryLedger::Account(const JobId& job, const EngineTelemetry& total) {
  EngineTelemetry& of_job = jobs_[job];
  Add(Since(seen_, total), of_job);
  seen_ = total;
  return {.incarnation = incarnation_, .sequence = ++reports_, .engine = of_job};
}

}  // namespace iha::worker
