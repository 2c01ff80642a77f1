#include "reports/imported.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "common/digest.h"
#include "common/errors.h"
#include "common/text.h"
#include "reports/score_csv.h"

namespace iha::reports {

absl::StatusOr<std::vector<ImportedRow>> ImportCsv(std::string_view text, std::string_view where) {
  const absl::StatusOr<ScoreCsv> csv = ParseScoreCsv(text);
  if (!csv.ok()) return Annotate(csv.status(), where);
  std::set<std::string> headers;
  for (const std::string& header : csv->metrics) {
    if (!headers.insert(header).second)
      return InvalidArgument("{}: column \"{}\" appears twice", where, TerminalSafe(header, 80));
  }
  const std::string source = fmt::format("CSV file {}", Sha256Of(text).Hex().substr(0, 16));
  std::vector<ImportedRow> rows;
  for (size_t m = 0; m < csv->models.size(); m++) {
    ImportedRow& row = rows.emplace_back();
    row.model = csv->models[m];
    if (row.model.find_first_not_of(" \t") == std::string::npos) {
      return InvalidArgument("{}: row {} has no name; the first column names the model", where, m + 1);
    }
    row.source = source;
    for (size_t c = 0; c < csv->metrics.size(); c++) {
      const std::optional<scoring::Rational>& value = csv->values[m][c];
      if (value.has_value() && (value->Sign() < 0 || *value > scoring::Rational(100))) {
        return InvalidArgument("{}: row {} ({}), column {}: {} is no percentage between 0 and 100", where, m + 1,
                               TerminalSafe(row.model, 80), TerminalSafe(csv->metrics[c], 80), csv->text[m][c]);
      }
      row.values.push_back({.column = csv->metrics[c],
                            .benchmark = "",
                            .metric = "",
                            .value = value.has_value() ? std::optional(*value / scoring::Rational(100)) : std::nullopt,
                            .decimals = csv->decimals[c],
                            .interval = std::nullopt});
    }
  }
  return rows;
}

absl::StatusOr<std::vector<ImportedRow>> MergedRows(std::vector<ImportedRow> rows) {
  std::vector<ImportedRow> merged;
  for (ImportedRow& row : rows) {
    const auto known =
        std::find_if(merged.begin(), merged.end(), [&](const ImportedRow& other) { return other.model == row.model; });
    if (known == merged.end()) {
      merged.push_back(std::move(row));
      continue;
    }
    for (ImportedValue& value : row.values) {
      const bool twice = std::any_of(known->values.begin(), known->values.end(),
                                     [&](const ImportedValue& other) { return other.column == value.column; });
      if (twice) {
        return InvalidArgument("imported row \"{}\": column \"{}\" comes from {} and from {}",
                               TerminalSafe(row.model, 80), TerminalSafe(value.column, 80), known->source, row.source);
      }
      known->values.push_back(std::move(value));
    }
    known->source += "; " + row.source;
    std::move(row.notes.begin(), row.notes.end(), std::back_inserter(known->notes));
  }
  return merged;
}

}  // namespace iha::reports
