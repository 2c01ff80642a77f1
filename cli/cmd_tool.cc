// Commands that run a model live in iha-tool; iha-eval starts it from its own folder and passes everything through.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>

#include "cli/command.h"
#include "common/errors.h"

namespace iha::cli {
namespace {

// Replaces this process: stdin, stdout, exit code and signals are the tool's.
int Exec(const std::string& program, const std::string& name, const std::vector<std::string>& arguments) {
  std::vector<std::string> text = {"iha-eval", name};  // the name that its messages begin with
  text.insert(text.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& argument : text) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  return Fail(name,
              Unavailable("{}: cannot be started: {}; it belongs beside iha-eval", program, std::strerror(errno)));
}

}  // namespace

void AddToolCommand(CLI::App& parent, Command& command, const std::string& group, const std::string& name,
                    const std::string& help) {
  CLI::App* sub = parent.add_subcommand(name, help);
  sub->prefix_command();  // every argument, --help included, is iha-tool's
  sub->set_help_flag();
  sub->callback([sub, &command, group, name] {
    std::vector<std::string> arguments = sub->remaining();
    if (!group.empty()) arguments.insert(arguments.begin(), name);
    command.exit_code = Exec(command.program_folder + "/iha-tool", group.empty() ? name : group, arguments);
  });
}

void AddToolCommands(CLI::App& app, Command& command) {
  const std::pair<const char*, const char*> tools[] = {
      {"generate", "Sample from a checkpoint: JSON Lines {\"prompt\"} to {\"samples\"}"},
      {"logits", "Logits of a token sequence, to a safetensors file"},
      {"check-oracle", "Compare checkpoints with their expected.safetensors"},
      {"upcycle", "Make an IHA checkpoint that computes the same function"},
  };
  for (const auto& [name, help] : tools) AddToolCommand(app, command, "", name, help);
}

}  // namespace iha::cli
