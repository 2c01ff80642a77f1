// iha-eval: the command line. The only file of cli/ that reads the environment.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "cli/command.h"
#include "common/bus_error.h"
#include "common/data_root.h"
#include "common/module_path.h"
#include "common/usage_error.h"
#include "common/version.h"
#include "proto/link/grpc_log.h"

namespace iha::cli {
namespace {

int Main(int argc, char** argv) {
  link::SilenceGrpcLog();
  Command command;
  command.program_folder = ProgramFolder();
  command.data_root = DefaultDataRoot(std::getenv("IHA_EVAL_DATA"), std::getenv("HOME"));
  if (const char* graders = std::getenv("IHA_EVAL_GRADERS")) command.graders = graders;
  for (int i = 0; i < argc; i++) command.line += std::string(i == 0 ? "" : " ") + argv[i];
  command.progress = isatty(STDERR_FILENO) != 0;

  CLI::App app("Scores language-model checkpoints: sweeps and paper tables.", "iha-eval");
  app.set_version_flag("--version", std::string("iha-eval ") + kVersion);
  app.require_subcommand(1);
  app.footer("Example:\n  iha-eval run --model DIR --bench gsm8k_demo --out out");
  for (const auto add : {AddRun, AddClient, AddStore, AddExplain, AddRegrade, AddBench, AddImport, AddInspect,
                         AddTokenize, AddToolCommands, AddScore, AddRank, AddFigure, AddGate, AddCompare, AddRuler}) {
    add(app, command);
  }
  if (const std::optional<int> code = ParseCommandLine(app, argc, argv)) return *code;
  return ExitCodeAfterOutput(app, command.exit_code);
}

}  // namespace
}  // namespace iha::cli

int main(int argc, char** argv) {
  iha::ExplainBusErrors();
  return iha::cli::Main(argc, argv);
}
