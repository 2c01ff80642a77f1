// gate_flags.h: what a gate is asked, as `gate` and `run --sequential-gate` both take it. Blocking where it reads;
// thread: main.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/store/store.h"
#include "reports/gate.h"
#include "reports/gate_sequential.h"

namespace CLI {
class App;
}

namespace iha::cli {

struct GateFlags {
  std::string baseline;  // a bundle's file, or SWEEP/MODEL of the database
  std::vector<std::string> metrics;
  std::string margin = "auto";
  std::string inconclusive = "exit6";
  std::string target = "population";
  reports::MarginRule rule;
};

// Declares --alpha, --power and --discordance.
void AddMarginRule(CLI::App& app, reports::MarginRule& rule);
// Declares those, --metrics, --margin, --inconclusive and --target, but not what names the baseline.
void AddGateFlags(CLI::App& app, GateFlags& flags);

// --margin in parts of 1; absent for auto. InvalidArgument names the flag.
absl::StatusOr<std::optional<double>> MarginOf(const GateFlags& flags);

// FailedPrecondition: a run that a sequential gate may have stopped is no baseline.
absl::Status CheckBaseline(const reports::GateRun& run);

// The baseline with its margins. `flag`: what named it, for messages. Errors: those of ParseBaseline, ParseRunName,
// ReadStoredRun and CheckBaseline.
absl::StatusOr<reports::GateRun> ReadGateBaseline(const GateFlags& flags, const std::string& flag,
                                                  coordinator::Store& store);

reports::GateOptions GateOptionsOf(const GateFlags& flags, const std::optional<double>& margin);

// Text on stdout; `json`: one object there and the text on stderr.
void PrintSequential(const reports::SequentialReport& report, bool json);

// 0, 5 or 6, as --inconclusive says.
int ExitCodeOf(reports::Verdict verdict, const std::string& inconclusive);

}  // namespace iha::cli
