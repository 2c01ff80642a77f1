#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/command.h"
#include "cli/input.h"
#include "common/errors.h"
#include "common/status_macros.h"
#include "reports/csv.h"
#include "reports/rank_csv.h"

namespace iha::cli {
namespace {

struct Flags {
  std::string baseline;
  std::string file;
  bool json = false;
};

// The same table, one object a row: the texts of its fields under the names of the columns, null where empty.
absl::StatusOr<std::string> AsJsonLines(const std::string& csv) {
  IHA_ASSIGN_OR_RETURN(const auto rows, reports::ParseCsv(csv));
  std::set<std::string> names;
  for (const std::string& name : rows[0]) {
    if (!names.insert(name).second) {
      return InvalidArgument("--json: column \"{}\" appears twice; an object has a field once", name);
    }
  }
  std::string out;
  for (size_t r = 1; r < rows.size(); r++) {
    nlohmann::ordered_json row = nlohmann::ordered_json::object();
    for (size_t c = 0; c < rows[0].size(); c++) {
      row[rows[0][c]] = rows[r][c].empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(rows[r][c]);
    }
    out += row.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }
  return out;
}

int Run(const Flags& flags) {
  const absl::StatusOr<std::string> csv = ReadInput(flags.file);
  if (!csv.ok()) return Fail("rank", csv.status());
  absl::StatusOr<std::string> ranked = reports::RankCsv(*csv, flags.baseline);
  if (ranked.ok() && flags.json) ranked = AsJsonLines(*ranked);
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
  sub->add_flag("--json", flags->json, "JSON Lines instead of CSV");
  sub->footer("Example:\n  iha-eval rank --baseline global scores.csv");
  sub->callback([flags, &command] { command.exit_code = Run(*flags); });
}

}  // namespace iha::cli
