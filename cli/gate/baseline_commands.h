// baseline_commands.h: what `export` takes from the gate: its flag --baseline. Thread: main.
#pragma once

namespace CLI {
class App;
}

namespace iha::cli {

struct Command;

// Declares --baseline and its flags on the `export` group, and the group's callback.
void AddBaselineExport(CLI::App& group, Command& command);

}  // namespace iha::cli
