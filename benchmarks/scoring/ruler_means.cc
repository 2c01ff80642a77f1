#include "benchmarks/scoring/ruler_means.h"

#include <charconv>

namespace iha::scoring {

std::optional<RulerCell> ParseRulerCell(std::string_view name) {
  constexpr std::string_view kPrefix = "ruler:";
  const size_t at = name.find('@');
  if (!name.starts_with(kPrefix) || at == std::string_view::npos || at == kPrefix.size()) return std::nullopt;
  RulerCell cell{.task = std::string(name.substr(kPrefix.size(), at - kPrefix.size())), .length = 0};
  const auto [end, error] = std::from_chars(name.data() + at + 1, name.data() + name.size(), cell.length);
  if (error != std::errc() || end != name.data() + name.size() || cell.length < 1) return std::nullopt;
  return cell;
}

RulerMeans RulerMeansOf(const std::vector<LengthMean>& lengths) {
  RulerMeans means;
  const int64_t count = static_cast<int64_t>(lengths.size());
  for (int64_t i = 0; i < count; ++i) {
    const LengthMean& at = lengths[static_cast<size_t>(i)];
    means.average += at.mean;
    means.weighted_increasing += at.mean * Rational(i + 1);
    means.weighted_decreasing += at.mean * Rational(count - i);
    if (at.mean > RulerThreshold()) means.effective_length = at.length;
  }
  const Rational weights(count * (count + 1) / 2);
  means.average /= Rational(count);
  means.weighted_increasing /= weights;
  means.weighted_decreasing /= weights;
  return means;
}

}  // namespace iha::scoring
