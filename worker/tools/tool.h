// tool.h: what every subcommand of iha-tool shares.
//
// A subcommand is one Add function: it declares its flags on the app and a callback that does the work and sets
// `exit_code`. Flags are read in main only. Thread: main.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/open_model.h"

namespace CLI {
class App;
}

namespace iha::tools {

struct Tool {
  std::string program = "iha-tool";  // as messages name it
  std::string data_root = {};        // benchmark data, unless a flag says otherwise
  int exit_code = 0;
};

// Prints "PROGRAM COMMAND: message" as one safe line on stderr; returns the exit code of the status' class.
int Fail(const Tool& tool, std::string_view command, const absl::Status& status);

// How a checkpoint is run: --device --numerics --kv-dtype --threads.
struct ModelFlags {
  std::string device = "cpu";
  std::string numerics = "exact";
  std::string kv_dtype = "f32";
  int threads = 0;  // 0 = all cores
};
void AddModelFlags(CLI::App& app, ModelFlags& flags);
// Unavailable: this build lacks the device.
absl::StatusOr<model::OpenOptions> ToOpenOptions(const ModelFlags& flags);

void AddGenerate(CLI::App& app, Tool& tool);
void AddLogits(CLI::App& app, Tool& tool);
void AddCheckOracle(CLI::App& app, Tool& tool);
void AddScore(CLI::App& app, Tool& tool);  // only in builds with libseccomp
void AddJudge(CLI::App& app, Tool& tool);  // the same
void AddUpcycle(CLI::App& app, Tool& tool);
void AddTorchBackend(CLI::App& app, Tool& tool);
void AddCudaBackend(CLI::App& app, Tool& tool);
void AddEngineBuild(CLI::App& app, Tool& tool);
void AddMachinePeak(CLI::App& app, Tool& tool);

}  // namespace iha::tools
