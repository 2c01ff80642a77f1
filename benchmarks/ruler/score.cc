#include "benchmarks/ruler/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "benchmarks/scoring/python_text.h"

namespace iha::benchmarks::ruler {

const char* NameOf(Match match) { return match == Match::kAll ? "string_match_all" : "string_match_part"; }

std::string CleanPrediction(std::string_view prediction) {
  std::string clean(scoring::PythonStrip(prediction));
  std::replace_if(
      clean.begin(), clean.end(), [](char c) { return c >= 0 && c < 0x20; }, '\n');
  return std::string(scoring::PythonStrip(clean));
}

std::vector<bool> FoundIn(const std::vector<std::string>& references, std::string_view prediction) {
  const std::string text = scoring::PythonLower(CleanPrediction(prediction));
  std::vector<bool> found;
  found.reserve(references.size());
  for (const std::string& reference : references) {
    found.push_back(text.find(scoring::PythonLower(reference)) != std::string::npos);
  }
  return found;
}

Score ScoreOf(Match match, const std::vector<bool>& found) {
  const int64_t hits = std::count(found.begin(), found.end(), true);
  if (match == Match::kPart) return {.num = hits > 0 ? 1 : 0, .den = 1};
  const int64_t all = static_cast<int64_t>(found.size());
  const int64_t common = std::gcd(hits, all);
  return {.num = hits / common, .den = all / common};
}

std::string OfficialPercent(std::span<const Score> scores) {
  double sum = 0;
  for (const Score& score : scores) sum += static_cast<double>(score.num) / static_cast<double>(score.den);
  return fmt::format("{:.2f}", sum / static_cast<double>(scores.size()) * 100);
}

}  // namespace iha::benchmarks::ruler
