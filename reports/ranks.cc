#include "reports/ranks.h"

namespace iha::reports {

using scoring::Rational;

ScoreMatrix RanksByMetric(const ScoreMatrix& values) {
  ScoreMatrix ranks(values.size());
  for (size_t m = 0; m < values.size(); m++) {
    for (size_t c = 0; c < values[m].size(); c++) {
      std::optional<Rational>& rank = ranks[m].emplace_back();
      const std::optional<Rational>& own = values[m][c];
      if (!own.has_value()) continue;
      int64_t better = 0;
      int64_t equal = 0;  // itself included
      for (const auto& row : values) {
        if (!row[c].has_value()) continue;
        if (*row[c] > *own) better++;
        if (*row[c] == *own) equal++;
      }
      // Ranks better+1 .. better+equal are shared: their mean.
      rank = Rational(2 * better + equal + 1, 2);
    }
  }
  return ranks;
}

std::vector<std::optional<Rational>> AverageRanks(const ScoreMatrix& values) {
  std::vector<std::optional<Rational>> averages;
  for (const auto& row : RanksByMetric(values)) {
    Rational sum;
    int64_t count = 0;
    for (const auto& rank : row) {
      if (!rank.has_value()) continue;
      sum += *rank;
      count++;
    }
    averages.push_back(count == 0 ? std::nullopt : std::optional<Rational>(sum / Rational(count)));
  }
  return averages;
}

}  // namespace iha::reports
