// iha-tool: the commands that run a model or candidate code. iha-eval starts it; it works by itself just as well, and
// is all that an engine-only build has.
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>

#include "common/bus_error.h"
#include "common/data_root.h"
#include "common/errors.h"
#include "common/text.h"
#include "common/usage_error.h"
#include "common/version.h"
#include "model/backend_module.h"
#include "worker/tools/tool.h"

namespace iha::tools {
namespace {

int Main(int argc, char** argv) {
  Tool tool;
  // iha-eval starts this program under its own name, and messages then speak of the command that was typed.
  if (argc > 0 && std::string_view(argv[0]) == "iha-eval") tool.program = "iha-eval";
  tool.data_root = DefaultDataRoot(std::getenv("IHA_EVAL_DATA"), std::getenv("HOME"));
  CLI::App app("Runs checkpoints: sampling, logits, checks against oracles; judges programs.", tool.program);
  app.set_version_flag("--version", tool.program + " " + kVersion);
  app.require_subcommand(1);
  app.footer("Example:\n  echo '{\"prompt\":\"2 + 2 =\"}' | iha-tool generate --model DIR --max-new-tokens 8");
  for (const auto add : {AddGenerate, AddLogits, AddCheckOracle, AddUpcycle, AddTorchBackend, AddCudaBackend,
                         AddEngineBuild, AddMachinePeak}) {
    add(app, tool);
  }
#ifdef IHA_HAVE_SANDBOX
  AddScore(app, tool);
  AddJudge(app, tool);
#endif
  if (const std::optional<int> code = ParseCommandLine(app, argc, argv)) return *code;
  return ExitCodeAfterOutput(app, tool.exit_code);
}

}  // namespace

int Fail(const Tool& tool, std::string_view command, const absl::Status& status) {
  const absl::string_view text = status.message();
  std::cerr << tool.program << " " << command << ": " << TerminalSafe({text.data(), text.size()}) << "\n";
  return ExitCodeFor(status);
}

}  // namespace iha::tools

int main(int argc, char** argv) {
  iha::ExplainBusErrors();
  iha::model::PrepareForBackendModules();
  return iha::tools::Main(argc, argv);
}
