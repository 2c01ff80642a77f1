#include "reports/rank_csv.h"

#include <fmt/format.h>

#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "reports/csv.h"
#include "reports/score_csv.h"

namespace iha::reports {
namespace {

using scoring::Rational;

std::string Signed(const Rational& value, int decimals) {
  std::string text = value.ToFixed(decimals);
  return text.front() == '-' ? text : "+" + text;
}

}  // namespace

absl::StatusOr<std::string> RankCsv(std::string_view csv, const std::string& baseline) {
  IHA_ASSIGN_OR_RETURN(const ScoreCsv s, ParseScoreCsv(csv));
  const auto at = std::find(s.models.begin(), s.models.end(), baseline);
  if (at == s.models.end()) {
    return InvalidArgument("--baseline \"{}\": no such row; the file has {}", baseline,
                           TerminalSafe(fmt::format("{}", fmt::join(s.models, ", "))));
  }
  const size_t base = static_cast<size_t>(at - s.models.begin());
  const auto averages = AverageRanks(s.values);

  std::string out = QuoteCsv(s.corner);
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
