// store_commands.h: what `table`, `list` and `export lm-eval` read from a database file.
// Read-only, beside a coordinator that may be writing. Errors: those of OpenSqliteStoreReadOnly, NotFound.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/command.h"
#include "cli/run/shown_samples.h"
#include "common/coordinator_api.h"
#include "reports/table.h"

namespace iha::cli {

struct TableRequest {
  std::string db;                    // "" = imported rows only
  std::string sweep;                 // the id or a prefix of it that is unique in the file
  std::vector<std::string> imports;  // files of rows that were not scored here: .csv, .json, .jsonl
  reports::TableOptions options;     // its list_items is filled in from the data
  bool about_the_list = false;       // intervals of the target "benchmark"
  std::string data_root;             // for benchmarks of which the sweep ran a part
  std::string format = "md";
  std::string grader;                     // see ReadSnapshot
  int64_t shown_samples = kShownSamples;  // html: items of each model and entry that are shown with their text
};
// InvalidArgument and NotFound also name what is wrong with an imported file.
absl::StatusOr<std::string> TableFromFiles(const TableRequest& request);
absl::StatusOr<std::vector<SweepSummary>> ListFromFile(const std::string& db);

void AddExportLmEval(CLI::App& group, Command& command);  // export lm-eval

}  // namespace iha::cli
