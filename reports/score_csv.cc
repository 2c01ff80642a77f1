#include "reports/score_csv.h"

#include <set>

#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "reports/csv.h"

namespace iha::reports {
namespace {

using scoring::Rational;

std::string Trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// A field in a message of one line; within quotes it may hold line ends.
std::string Named(const std::string& field) { return TerminalSafe(field, 80); }

int DecimalsOf(const std::string& number) {
  const size_t point = number.find('.');
  if (point == std::string::npos) return 0;
  const size_t end = std::min(number.find_first_not_of("0123456789", point + 1), number.size());
  return static_cast<int>(end - point - 1);
}

}  // namespace

absl::StatusOr<ScoreCsv> ParseScoreCsv(std::string_view csv) {
  IHA_ASSIGN_OR_RETURN(const auto rows, ParseCsv(csv));
  if (rows.size() < 2 || rows[0].size() < 2) {
    return InvalidArgument("expected a header line (model, then one column a metric) and at least one row");
  }
  ScoreCsv scores;
  scores.corner = rows[0][0];
  scores.metrics.assign(rows[0].begin() + 1, rows[0].end());
  scores.decimals.assign(scores.metrics.size(), 0);
  std::set<std::string> seen;
  for (size_t r = 1; r < rows.size(); r++) {
    if (rows[r].size() != rows[0].size()) {
      return InvalidArgument("row {} ({}): {} fields, expected {} as in the header", r, Named(rows[r][0]),
                             rows[r].size(), rows[0].size());
    }
    if (!seen.insert(rows[r][0]).second)
      return InvalidArgument("row {}: model \"{}\" appears twice", r, Named(rows[r][0]));
    scores.models.push_back(rows[r][0]);
    scores.text.emplace_back(rows[r].begin() + 1, rows[r].end());
    auto& values = scores.values.emplace_back();
    for (size_t c = 0; c < scores.metrics.size(); c++) {
      const std::string text = Trimmed(rows[r][c + 1]);
      if (text.empty()) {
        values.emplace_back();
        continue;
      }
      std::optional<Rational> value = Rational::ParseDecimal(text);
      if (!value.has_value()) {
        return InvalidArgument(
            "row {} ({}), column {}: \"{}\" is not a decimal number; leave the field empty if missing", r,
            Named(rows[r][0]), Named(scores.metrics[c]), Named(text));
      }
      values.emplace_back(*std::move(value));
      scores.decimals[c] = std::max(scores.decimals[c], DecimalsOf(text));
    }
  }
  return scores;
}

}  // namespace iha::reports
