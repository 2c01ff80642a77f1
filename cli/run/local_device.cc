#include "cli/run/local_device.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/child_process.h"
#include "common/errors.h"
#include "common/eval_types.h"
#include "common/status_macros.h"

namespace iha::cli {

namespace {

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

absl::Status ToolFailed(const char* command, const RunResult& run) {
  return Unavailable(
      "{}", run.err.empty() ? fmt::format("iha-tool {}: {}", command, run.exit.ToString()) : FirstLine(run.err));
}

}  // namespace

absl::StatusOr<std::string> LocalCudaBackend(const std::string& program_folder, const NumericsSpec& numerics,
                                             const std::string& device) {
  const bool torch = numerics.torch(), fast = numerics.fast();
  const char* const command = torch ? "torch-backend" : fast ? "cuda-fast-backend" : "cuda-backend";
  ChildOptions tool;
  tool.argv = {program_folder + "/iha-tool", command, "--device", device};
  IHA_ASSIGN_OR_RETURN(const RunResult run, RunChild(tool, "", {.timeout = absl::Minutes(2)}));
  const std::string backend = FirstLine(run.out);
  const auto is_one = torch ? IsTorchCudaName : fast ? IsCudaFastName : IsCudaExactName;
  if (run.exit.ok() && is_one(backend)) return backend;
  return ToolFailed(command, run);
}

absl::StatusOr<MachinePeak> LocalMachinePeak(const std::string& program_folder, int threads) {
  ChildOptions tool;
  tool.argv = {program_folder + "/iha-tool", "machine-peak", "--threads", std::to_string(threads)};
  IHA_ASSIGN_OR_RETURN(const RunResult run, RunChild(tool, "", {.timeout = absl::Minutes(2)}));
  const nlohmann::json json = nlohmann::json::parse(run.out, nullptr, false);
  const auto number = [&json](const char* key) {
    const auto at = json.is_object() ? json.find(key) : json.end();
    return json.is_object() && at != json.end() && at->is_number() ? at->get<double>() : 0.0;
  };
  const MachinePeak peak{.threads = threads, .fma_gflops = number("fma_gflops"), .read_gbs = number("read_gbs")};
  if (run.exit.ok() && peak.fma_gflops > 0 && peak.read_gbs > 0) return peak;
  return ToolFailed("machine-peak", run);
}

}  // namespace iha::cli
