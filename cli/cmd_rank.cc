#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/command.h"
#include "cli/input.h"
#include "reports/rank_csv.h"

namespace iha::cli {
namespace {

struct Flags {
  std::string baseline;
  std::string file;
};

int Run(const Flags& flags) {
  const absl::StatusOr<std::string> csv = ReadInput(flags.file);
  if (!csv.ok()) return Fail("rank", csv.status());
  const absl::StatusOr<std::string> ranked = reports::RankCsv(*csv, flags.baseline);
  if (!ranked.ok()) return Fail("rank", Annotate(ranked.status(), flags.file));
  std::cout << *ranked;
  return kExitOk;
}

}  // namespace

void AddRank(CLI::App& app, Command& command) {
  CLI::App* sub = app.add_subcommand("rank", "Deltas to a baseline and average ranks for a CSV of scores");
  const auto flags = std::make_shared<Flags>();
  sub->add_option("--baseline", flags->baseline, "row that deltas are against")->required();
  sub->add_option("file", flags->file, "CSV: model, then one column a metric; - = stdin")->required();
  sub->footer("Example:\n  iha-eval rank --baseline global scores.csv");
  sub->callback([flags, &command] { command.exit_code = Run(*flags); });
}

}  // namespace iha::cli
