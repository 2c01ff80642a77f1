// command.h: what every subcommand of iha-eval shares.
//
// A subcommand is one Add function: it declares its flags on the app and a callback that does the work and sets
// `exit_code`. Flags and the environment are read in main only. Thread: main.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace iha::cli {

struct Command {
  std::string program_folder;  // where iha-eval lies: iha-worker and iha-tool are started from here
  std::string data_root;       // --data-root, else IHA_EVAL_DATA, else ~/.local/share/iha-eval
  std::string graders;         // --graders, else IHA_EVAL_GRADERS: the Python libraries of the SymPy graders; "" = none
  std::string line;            // as it was called, for run.json
  bool progress = false;       // stderr is a terminal
  int exit_code = 0;
};

// Prints "iha-eval COMMAND: message" as one safe line on stderr; returns the exit code of the status' class.
int Fail(std::string_view command, const absl::Status& status);
// The same for a mistake of the command line itself: returns kExitUsage.
int FailUsage(std::string_view command, const absl::Status& status);

void AddRun(CLI::App& app, Command& command);     // run, sweep example
void AddClient(CLI::App& app, Command& command);  // submit, watch, status, cancel, list, table
void AddStore(CLI::App& app, Command& command);   // fsck, backup, profile, export
void AddExplain(CLI::App& app, Command& command);
void AddRegrade(CLI::App& app, Command& command);
void AddGate(CLI::App& app, Command& command);
void AddCompare(CLI::App& app, Command& command);
void AddBench(CLI::App& app, Command& command);   // bench list, bench show, data import
void AddImport(CLI::App& app, Command& command);  // import gguf
void AddInspect(CLI::App& app, Command& command);
void AddTokenize(CLI::App& app, Command& command);  // tokenize, detokenize
// generate, logits, check-oracle, upcycle: passed through to iha-tool.
void AddToolCommands(CLI::App& app, Command& command);
// One of them; `group`: what it is a subcommand of there ("" = of the program).
void AddToolCommand(CLI::App& parent, Command& command, const std::string& group, const std::string& name,
                    const std::string& help);
void AddScore(CLI::App& app, Command& command);         // score gsm8k|math|equiv|ruler|humaneval|mbpp, vote
void AddScoreRuler(CLI::App& score, Command& command);  // score ruler
void AddRank(CLI::App& app, Command& command);
void AddFigure(CLI::App& app, Command& command);
void AddRuler(CLI::App& app, Command& command);  // ruler generate

}  // namespace iha::cli
