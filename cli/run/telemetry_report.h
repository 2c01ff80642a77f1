// telemetry_report.h: what the workers of a sweep did and how long it took, as stored with their commits.
//
// For run.json, `run --profile` and `profile`. Work of a worker that died is in it up to its last commit; answers that
// were stored before cost nothing and are not in it. Blocking: one read transaction. Thread: any.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/telemetry.h"
#include "coordinator/store/store.h"
#include "nlohmann/json_fwd.hpp"

namespace iha::cli {

struct JobReport {
  JobId job;
  std::string model;
  std::string benchmark;  // canonical spec
  int32_t entry = 0;
  int64_t processes = 0;  // worker processes that reported
  EngineTelemetry engine;
};
struct SweepTelemetry {
  std::vector<JobReport> jobs;  // in table order, each of the sweep
  EngineTelemetry total;
};

// NotFound: no such sweep.
absl::StatusOr<SweepTelemetry> ReadTelemetry(coordinator::Store& store, const SweepId& sweep);
// {"jobs": [...], "total": {...}} as docs/schemas/profile.schema.json has it.
nlohmann::ordered_json ToJson(const SweepTelemetry& telemetry);
nlohmann::ordered_json ToJson(const EngineBuild& engine);
nlohmann::ordered_json ToJson(const MachinePeak& peak);

}  // namespace iha::cli
