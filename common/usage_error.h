// usage_error.h: a program's command line, and what it says when that cannot be parsed. Thread: main.
#pragma once

#include <optional>

namespace CLI {
class App;
}  // namespace CLI

namespace iha {

// Parses and runs the callbacks. The exit code if the program ends with that: 0 after --help or --version; kExitUsage
// after one line "PROGRAM: ...; see PROGRAM COMMAND --help" on stderr, safe for a terminal. It tells the first option
// that would take another one's name for its value ("--out --json", which the parser lets pass; --out=--json is meant),
// else the first word that the command does not know, with the nearest that it does, else what the parser says.
// `app` is the root, named as the program.
std::optional<int> ParseCommandLine(CLI::App& app, int argc, const char* const* argv);

// What the program ends with when its command has ended with `exit_code`: where that is 0 but standard output did not
// take all that was printed (a full disk), kExitUnavailable, after one line on stderr.
int ExitCodeAfterOutput(const CLI::App& app, int exit_code);

}  // namespace iha
