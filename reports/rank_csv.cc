#include "reports/rank_csv.h"

#include <fmt/format.h>

#include <set>

#include "common/errors.h"
#include "reports/csv.h"
#include "reports/ranks.h"

namespace iha::reports {
namespace {

using scoring::Rational;

struct Scores {
  std::vector<std::string> metrics;
  std::vector<std::string> models;
  std::vector<std::vector<std::string>> text;  // [model][metric], as given
  ScoreMatrix values;
  std::vector<int> decimals;  // most digits after the point, per metric
};

std::string Trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

int DecimalsOf(const std::string& number) {
  const size_t point = number.find('.');
  if (point == std::string::npos) return 0;
  const size_t end = std::min(number.find_first_not_of("0123456789", point + 1), number.size());
  return static_cast<int>(end - point - 1);
}

absl::StatusOr<Scores> ScoresOf(const std::vector<std::vector<std::string>>& rows) {
  if (rows.size() < 2 || rows[0].size() < 2) {
    return InvalidArgument("expected a header line (model, then one column a metric) and at least one row");
  }
  Scores scores;
  scores.metrics.assign(rows[0].begin() + 1, rows[0].end());
  scores.decimals.assign(scores.metrics.size(), 0);
  std::set<std::string> seen;
  for (size_t r = 1; r < rows.size(); r++) {
    if (rows[r].size() != rows[0].size()) {
      return InvalidArgument("row {} ({}): {} fields, expected {} as in the header", r, rows[r][0], rows[r].size(),
                             rows[0].size());
    }
    if (!seen.insert(rows[r][0]).second) return InvalidArgument("row {}: model \"{}\" appears twice", r, rows[r][0]);
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
            "row {} ({}), column {}: \"{}\" is not a decimal number; leave the field empty if missing", r, rows[r][0],
            scores.metrics[c], text);
      }
      values.emplace_back(*std::move(value));
      scores.decimals[c] = std::max(scores.decimals[c], DecimalsOf(text));
    }
  }
  return scores;
}

std::string Signed(const Rational& value, int decimals) {
  std::string text = value.ToFixed(decimals);
  return text.front() == '-' ? text : "+" + text;
}

}  // namespace

absl::StatusOr<std::string> RankCsv(std::string_view csv, const std::string& baseline) {
  auto rows = ParseCsv(csv);
  if (!rows.ok()) return rows.status();
  auto parsed = ScoresOf(*rows);
  if (!parsed.ok()) return parsed.status();
  const Scores& s = *parsed;
  const auto at = std::find(s.models.begin(), s.models.end(), baseline);
  if (at == s.models.end()) {
    return InvalidArgument("--baseline \"{}\": no such row; the file has {}", baseline, fmt::join(s.models, ", "));
  }
  const size_t base = static_cast<size_t>(at - s.models.begin());
  const auto averages = AverageRanks(s.values);

  std::string out = QuoteCsv((*rows)[0][0]);
  for (const std::string& metric : s.metrics) out += "," + QuoteCsv(metric) + "," + QuoteCsv(metric + " delta");
  out += ",Avg. Rank\n";
  for (size_t m = 0; m < s.models.size(); m++) {
    out += QuoteCsv(s.models[m]);
    for (size_t c = 0; c < s.metrics.size(); c++) {
      out += "," + QuoteCsv(s.text[m][c]) + ",";
      const auto& own = s.values[m][c];
      const auto& reference = s.values[base][c];
      if (m != base && own.has_value() && reference.has_value()) out += Signed(*own - *reference, s.decimals[c]);
    }
    out += "," + (averages[m].has_value() ? averages[m]->ToFixed(1) : std::string()) + "\n";
  }
  return out;
}

}  // namespace iha::reports
