#include "cli/run/local_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/child_process.h"
#include "common/errors.h"
#include "common/eval_types.h"
#include "common/status_macros.h"

namespace iha::cli {

namespace {

using Json = nlohmann::json;

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

absl::Status ToolFailed(const char* command, const RunResult& run) {
  return Unavailable(
      "{}", run.err.empty() ? fmt::format("iha-tool {}: {}", command, run.exit.ToString()) : FirstLine(run.err));
}

bool IsRate(const Json& value) { return value.is_number() && value.get<double>() > 0; }
bool IsName(const Json& value) { return value.is_string() && !value.get_ref<const std::string&>().empty(); }

// The object that a command of iha-tool prints, with a good value of each of `keys`.
absl::StatusOr<Json> AskTool(const std::string& program_folder, const std::vector<std::string>& command,
                             std::initializer_list<const char*> keys, bool (*good)(const Json&)) {
  ChildOptions tool;
  tool.argv = {program_folder + "/iha-tool"};
  tool.argv.insert(tool.argv.end(), command.begin(), command.end());
  IHA_ASSIGN_OR_RETURN(const RunResult run, RunChild(tool, "", {.timeout = absl::Minutes(2)}));
  Json json = Json::parse(run.out, nullptr, false);
  const auto has = [&json, good](const char* key) { return json.contains(key) && good(json.at(key)); };
  if (run.exit.ok() && json.is_object() && std::ranges::all_of(keys, has)) return json;
  return ToolFailed(command[0].c_str(), run);
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
  IHA_ASSIGN_OR_RETURN(const Json found, AskTool(program_folder, {"machine-peak", "--threads", std::to_string(threads)},
                                                 {"fma_gflops", "read_gbs"}, IsRate));
  return MachinePeak{.threads = threads, .fma_gflops = found.at("fma_gflops"), .read_gbs = found.at("read_gbs")};
}

absl::StatusOr<EngineBuild> LocalEngineBuild(const std::string& program_folder) {
  IHA_ASSIGN_OR_RETURN(const Json found, AskTool(program_folder, {"engine-build"}, {"simd", "build"}, IsName));
  return EngineBuild{.simd = found.at("simd"), .build = found.at("build")};
}

}  // namespace iha::cli
