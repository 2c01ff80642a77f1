// imported.h: rows of a table that were not scored here: printed values, results of another tool.
//
// A table marks such rows "imported"; nothing here is ever "exact". Pure; thread: any. Texts come from outside: errors
// are InvalidArgument, one line that begins with `where` (a file name).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/scoring/rational.h"
#include "benchmarks/scoring/stats.h"

namespace iha::reports {

struct ImportedValue {
  std::string column;  // header of the column as the source has it: "GSM8K P@1"
  // Whose metric it is, by our names ("gsm8k", "gsm8k.strict_match"); both empty where the source is only a header.
  std::string benchmark;
  std::string metric;
  // What of its settings the source tells: all of them, as Describe (table.h) has them, or the number of shots.
  std::string entry = "";
  std::optional<int64_t> shots = std::nullopt;
  std::optional<scoring::Rational> value;  // 1 = 100 %; absent: the source has the column, and nothing in it
  int decimals = 2;                        // of the percentage, as the source has it
  // Where the source has each item\'s grade: ours of them.
  std::optional<scoring::Interval> interval;
};

struct ImportedRow {
  std::string model;
  std::string source;  // "CSV file, SHA-256 ...": one line
  std::vector<ImportedValue> values;
  std::vector<std::string> notes;  // what of the source is not among the values, and why
};

// A CSV of percentages: first column the model, then one column a metric, higher is better, empty = missing; what
// `iha-eval rank` reads, and no header twice.
absl::StatusOr<std::vector<ImportedRow>> ImportCsv(std::string_view text, std::string_view where);

// One row for each model: rows of one name become one, in the place of the first. InvalidArgument if two of them have a
// value in one column.
absl::StatusOr<std::vector<ImportedRow>> MergedRows(std::vector<ImportedRow> rows);

}  // namespace iha::reports
