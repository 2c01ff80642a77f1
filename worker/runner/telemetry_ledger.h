// telemetry_ledger.h: what this worker process did for each job, so far; goes along with every commit.
//
// One engine serves all leases, so its work is shared out: what it did since the last sample came back is the job's of
// the sample that comes back now. Over the jobs of one worker the shares add up to what the engine did. Belongs to the
// worker's loop thread.
#pragma once

#include <map>

#include "common/ids.h"
#include "common/telemetry.h"

namespace iha::worker {

class TelemetryLedger {
 public:
  explicit TelemetryLedger(int64_t incarnation) : incarnation_(incarnation) {}

  // Another engine: it counts from zero.
  void StartEngine() { seen_ = {}; }
  // `total`: of the engine, since it was made. Returns what `job` has by now, as a report.
  JobTelemetry Account(const JobId& job, const EngineTelemetry& total);

 private:
  const int64_t incarnation_;
  int64_t reports_ = 0;
  EngineTelemetry seen_;  // of the running engine, shared out already
  std::map<JobId, EngineTelemetry> jobs_;
};

}  // namespace iha::worker
