#include "cli/run/local_device.h"

#include "common/child_process.h"
#include "common/errors.h"
#include "common/eval_types.h"
#include "common/status_macros.h"

namespace iha::cli {

absl::StatusOr<std::string> LocalCudaBackend(const std::string& program_folder) {
  const auto line = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  ChildOptions tool;
  tool.argv = {program_folder + "/iha-tool", "torch-backend", "--device", "cuda"};
  IHA_ASSIGN_OR_RETURN(const RunResult run, RunChild(tool, "", {.timeout = absl::Minutes(2)}));
  const std::string backend = line(run.out);
  if (run.exit.ok() && IsTorchCudaName(backend)) return backend;
  return Unavailable("{}", run.err.empty() ? "iha-tool torch-backend: " + run.exit.ToString() : line(run.err));
}

}  // namespace iha::cli
