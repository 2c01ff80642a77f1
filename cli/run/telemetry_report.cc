#include "cli/run/telemetry_report.h"

#include <nlohmann/json.hpp>

#include "benchmarks/benchmark.h"
#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::cli {
namespace {

using Json = nlohmann::ordered_json;

Json OperationJson(const OpTelemetry& op) {
  const double seconds = absl::ToDoubleSeconds(op.time);
  const auto rate = [seconds](double amount) {
    return amount > 0 && seconds > 0 ? Json(amount * 1e-9 / seconds) : Json(nullptr);
  };
  return {{"operation", op.name},
          {"calls", op.calls},
          {"seconds", seconds},
          {"gflop", op.flops * 1e-9},
          {"gbyte", op.bytes * 1e-9},
          {"gflop_per_second", rate(op.flops)},
          {"gbyte_per_second", rate(op.bytes)}};
}

Json EngineJson(const EngineTelemetry& t) {
  const double steps = static_cast<double>(std::max<int64_t>(1, t.steps));
  Json json = {{"prompt_tokens", t.prompt_tokens},
               {"reused_tokens", t.reused_tokens},
               {"generated_tokens", t.generated_tokens},
               {"prefill_tokens", t.prefill_tokens},
               {"decode_tokens", t.decode_tokens},
               {"prefill_seconds", absl::ToDoubleSeconds(t.prefill_time)},
               {"decode_seconds", absl::ToDoubleSeconds(t.decode_time)},
               {"attention_seconds", absl::ToDoubleSeconds(AttentionTime(t))},
               {"matmul_seconds", absl::ToDoubleSeconds(MatmulTime(t))},
               {"schedule_seconds", absl::ToDoubleSeconds(t.schedule_time)},
               {"sample_seconds", absl::ToDoubleSeconds(t.sample_time)},
               {"steps", t.steps},
               {"sequences_per_step", static_cast<double>(t.step_sequences) / steps},
               {"preemptions", t.preemptions},
               {"prefix_hit_blocks", t.prefix_hit_blocks},
               {"prefix_lookup_blocks", t.prefix_lookup_blocks},
               {"kv_blocks", t.kv_blocks},
               {"kv_blocks_peak", t.kv_blocks_peak}};
  Json& operations = json["operations"] = Json::array();
  for (const OpTelemetry& op : t.operations) operations.push_back(OperationJson(op));
  return json;
}

}  // namespace

absl::StatusOr<SweepTelemetry> ReadTelemetry(coordinator::Store& store, const SweepId& sweep) {
  SweepTelemetry telemetry;
  IHA_RETURN_IF_ERROR(store.Read([&](coordinator::ReadTxn& txn) -> absl::Status {
    telemetry = {};
    IHA_ASSIGN_OR_RETURN(const auto record, txn.FindSweep(sweep));
    if (!record.has_value()) return NotFound("sweep {}: not in this database", sweep.Hex());
    IHA_ASSIGN_OR_RETURN(const std::vector<coordinator::JobRecord> jobs, txn.Jobs(sweep));
    for (const coordinator::JobRecord& job : jobs) {
      JobReport& report = telemetry.jobs.emplace_back();
      report.job = job.id;
      report.model = job.spec.model.name;
      report.benchmark = benchmarks::ToString(job.spec.entry.benchmark);
      report.entry = job.spec.entry_index;
      IHA_ASSIGN_OR_RETURN(const std::vector<coordinator::TelemetryRecord> processes, txn.Telemetry(job.id));
      for (const auto& process : processes) {
        report.processes++;
        Add(process.telemetry.engine, report.engine);
      }
      Add(report.engine, telemetry.total);
    }
    return absl::OkStatus();
  }));
  return telemetry;
}

Json ToJson(const SweepTelemetry& telemetry) {
  Json json = {{"jobs", Json::array()}, {"total", EngineJson(telemetry.total)}};
  for (const JobReport& report : telemetry.jobs) {
    Json job = {{"job", report.job.Hex()},
                {"model", report.model},
                {"benchmark", report.benchmark},
                {"entry", report.entry},
                {"processes", report.processes}};
    job.update(EngineJson(report.engine));
    json["jobs"].push_back(std::move(job));
  }
  return json;
}

Json ToJson(const EngineBuild& engine) { return {{"simd", engine.simd}, {"build", engine.build}}; }

Json ToJson(const MachinePeak& peak) {
  return {{"threads", peak.threads}, {"fma_gflops", peak.fma_gflops}, {"read_gbs", peak.read_gbs}};
}

}  // namespace iha::cli
