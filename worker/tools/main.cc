// iha-tool: the commands that run a model or candidate code. iha-eval starts it; it works by itself just as well, and
// is all that an engine-only build has.
#include <CLI/CLI.hpp>
#include <iostream>

#include "common/errors.h"
#include "common/nearest.h"
#include "common/text.h"
#include "common/version.h"
#include "model/backend_module.h"
#include "worker/tools/tool.h"

namespace iha::tools {
namespace {

int UsageError(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  std::string message = error.what();
  std::vector<std::string> known;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    known.push_back(sub->get_name());
  const bool is_command = argc > 1 && std::find(known.begin(), known.end(), argv[1]) != known.end();
  if (argc > 1 && argv[1][0] != '-' && !is_command) {
    message = std::string(UnknownName("command", argv[1], known).message());
  }
  const std::string help = is_command ? std::string(argv[1]) + " --help" : "--help";
  std::cerr << "iha-tool: " << TerminalSafe(message) << "; see iha-tool " << help << "\n";
  return kExitUsage;
}

int Main(int argc, char** argv) {
  Tool tool;
  CLI::App app("Runs checkpoints: sampling, logits, checks against oracles.", "iha-tool");
  app.set_version_flag("--version", std::string("iha-tool ") + kVersion);
  app.require_subcommand(1);
  app.footer("Example:\n  echo '{\"prompt\":\"2 + 2 =\"}' | iha-tool generate --model DIR --max-new-tokens 8");
  for (const auto add : {AddGenerate, AddLogits, AddCheckOracle, AddUpcycle}) add(app, tool);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return UsageError(app, error, argc, argv);
  }
  return tool.exit_code;
}

}  // namespace

int Fail(std::string_view command, const absl::Status& status) {
  const absl::string_view text = status.message();
  std::cerr << "iha-tool " << command << ": " << TerminalSafe({text.data(), text.size()}) << "\n";
  return ExitCodeFor(status);
}

}  // namespace iha::tools

int main(int argc, char** argv) {
  iha::model::PrepareForBackendModules();
  return iha::tools::Main(argc, argv);
}
