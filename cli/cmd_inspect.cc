#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/inspect.h"

namespace iha::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  std::string directory;
  std::string against;
  std::vector<int64_t> lengths = {1024, 4096};
  double tolerance = 5;  // percent
  bool json = false;
};

int RunInspect(const Flags& flags) {
  const auto opened = checkpoint::Checkpoint::Open(flags.directory);
  if (!opened.ok()) return Fail("inspect", opened.status());
  const checkpoint::Inspection inspection = checkpoint::Inspect(*opened, flags.lengths);
  std::cout << (flags.json ? checkpoint::InspectionJson(inspection) + "\n" : checkpoint::InspectionText(inspection));
  return kExitOk;
}

struct Row {
  int64_t length = 0;
  double flops = 0;
  double against = 0;
  double ratio = 0;
  bool matched = false;
};

// Weights are not read: the audit is of what the architectures cost.
absl::StatusOr<std::vector<Row>> Audit(const Flags& flags) {
  IHA_ASSIGN_OR_RETURN(const auto ours, checkpoint::Checkpoint::Open(flags.directory));
  IHA_ASSIGN_OR_RETURN(const auto theirs, checkpoint::Checkpoint::Open(flags.against));
  std::vector<Row> rows;
  for (const int64_t length : flags.lengths) {
    Row& row = rows.emplace_back();
    row.length = length;
    row.flops = checkpoint::ModelFlops(ours.config(), length).total();
    row.against = checkpoint::ModelFlops(theirs.config(), length).total();
    row.ratio = row.flops / row.against;
    row.matched = std::abs(row.ratio - 1) * 100 <= flags.tolerance;
  }
  return rows;
}

int RunAgainst(const Flags& flags) {
  const auto rows = Audit(flags);
  if (!rows.ok()) return Fail("inspect", rows.status());
  bool matched = true;
  Json json = {{"directory", flags.directory}, {"against", flags.against}, {"tolerance_percent", flags.tolerance}};
  json["lengths"] = Json::array();
  std::string text = TerminalSafe(fmt::format("FLOP per token, {} against {}, tolerance {} %", flags.directory,
                                              flags.against, flags.tolerance)) +
                     "\n";
  for (const Row& row : *rows) {
    matched = matched && row.matched;
    json["lengths"].push_back({{"length", row.length},
                               {"flops_per_token", row.flops},
                               {"against_flops_per_token", row.against},
                               {"ratio", row.ratio},
                               {"matched", row.matched}});
    text += fmt::format("  length {}: {:.6g} against {:.6g}, ratio {:.4f}{}\n", row.length, row.flops, row.against,
                        row.ratio, row.matched ? "" : "  NOT MATCHED");
  }
  json["matched"] = matched;
  std::cout << (flags.json ? json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n" : text);
  return matched ? kExitOk : kExitCheckFailed;
}

}  // namespace

void AddInspect(CLI::App& app, Command& command) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* inspect = app.add_subcommand("inspect", "Validate a checkpoint and say what it is and what it costs");
  inspect->add_option("directory", flags->directory, "checkpoint directory")->required();
  inspect->add_option("--lengths", flags->lengths, "prompt lengths that FLOP per token are given at")
      ->delimiter(',')
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 32));
  inspect->add_option("--against", flags->against, "audit that this checkpoint costs the same FLOP; exit 5 if not");
  inspect->add_option("--tolerance", flags->tolerance, "percent that --against allows")->check(CLI::NonNegativeNumber);
  inspect->add_flag("--json", flags->json, "one JSON object");
  inspect->footer(
      "Example:\n  iha-eval inspect iha-checkpoint --lengths 1024,4096\n"
      "  iha-eval inspect iha-checkpoint --against global-checkpoint");
  inspect->callback(
      [flags, &command] { command.exit_code = flags->against.empty() ? RunInspect(*flags) : RunAgainst(*flags); });
}

}  // namespace iha::cli
