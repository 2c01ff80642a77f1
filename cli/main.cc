// iha-eval: the command line. The only file of cli/ that reads the environment.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "cli/command.h"
#include "common/data_root.h"
#include "common/errors.h"
#include "common/nearest.h"
#include "common/text.h"
#include "common/version.h"
#include "proto/link/grpc_log.h"

namespace iha::cli {
namespace {

std::string ProgramFolder() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "." : self.parent_path().string();
}

// "iha-eval tabel" deserves better than CLI11's list.
int UsageError(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  std::string message = error.what();
  std::vector<std::string> known;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    known.push_back(sub->get_name());
  const bool is_command = argc > 1 && std::find(known.begin(), known.end(), argv[1]) != known.end();
  if (argc > 1 && argv[1][0] != '-' && !is_command)
    message = std::string(UnknownName("command", argv[1], known).message());
  std::string help = is_command ? std::string(argv[1]) + " --help" : "--help";
  std::cerr << "iha-eval: " << TerminalSafe(message) << "; see iha-eval " << TerminalSafe(help) << "\n";
  return kExitUsage;
}

int Main(int argc, char** argv) {
  link::SilenceGrpcLog();
  Command command;
  command.program_folder = ProgramFolder();
  command.data_root = DefaultDataRoot(std::getenv("IHA_EVAL_DATA"), std::getenv("HOME"));
  for (int i = 0; i < argc; i++) command.line += std::string(i == 0 ? "" : " ") + argv[i];
  command.progress = isatty(STDERR_FILENO) != 0;

  CLI::App app("Scores language-model checkpoints: sweeps, paper tables and CI gates.", "iha-eval");
  app.set_version_flag("--version", std::string("iha-eval ") + kVersion);
  app.require_subcommand(1);
  app.footer("Example:\n  iha-eval run --model DIR --bench gsm8k_demo --out out");
  for (const auto add : {AddRun, AddClient, AddStore, AddExplain, AddBench, AddImport, AddInspect, AddTokenize,
                         AddToolCommands, AddScore, AddRank}) {
    add(app, command);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return UsageError(app, error, argc, argv);
  }
  return command.exit_code;
}

}  // namespace

}  // namespace iha::cli

int main(int argc, char** argv) { return iha::cli::Main(argc, argv); }
