#include "reports/ruler_summary.h"

#include <fmt/format.h>

#include <map>

namespace iha::reports {
namespace {

using scoring::Rational;

// What cells that are averaged together have in common; nullopt for other benchmarks.
std::optional<std::string> SettingOf(const SweepEntry& entry) {
  if (!scoring::ParseRulerCell(entry.benchmark.name).has_value()) return std::nullopt;
  std::string text;
  for (const auto& [option, value] : entry.benchmark.options) {
    // Essay tasks have it, the others do not.
    if (option != scoring::kRulerHaystackOption) text += fmt::format("{}={} ", option, value);
  }
  const SamplingParams& s = entry.sampling;
  text += fmt::format("k={} T={}", s.samples, s.temperature);
  if (s.temperature > 0) text += fmt::format(" top_p={} top_k={} seed={}", s.top_p, s.top_k, s.seed);
  if (entry.limit.has_value()) text += fmt::format(" limit={}", *entry.limit);
  return text;
}

// Entries of one setting, by length.
using ByLength = std::map<int64_t, std::vector<size_t>>;

// The cells of one length, which have `share` of a mean together.
std::vector<WeightedCell> Weighted(const std::vector<size_t>& entries, const std::vector<Cell>& cells, double share) {
  std::vector<WeightedCell> weighted;
  for (const size_t e : entries) weighted.push_back({&cells[e], share / static_cast<double>(entries.size())});
  return weighted;
}

RulerLength MeanOf(const std::vector<size_t>& entries, const std::vector<Cell>& cells) {
  RulerLength length{.mean = std::nullopt, .bounds = std::nullopt, .complete = true};
  Rational sum;
  for (const size_t e : entries) {
    if (!cells[e].value.has_value()) return {.mean = std::nullopt, .bounds = std::nullopt, .complete = false};
    sum += *cells[e].value;
    length.complete = length.complete && cells[e].complete();
  }
  length.mean = sum / Rational(static_cast<int64_t>(entries.size()));
  length.bounds = BoundsOfMean(Weighted(entries, cells, 1.0));
  return length;
}

// Weights as in scoring::RulerMeansOf, of lengths from the shortest on.
void FillBounds(const ByLength& by_length, const std::vector<Cell>& cells, RulerRowSummary& row) {
  const auto count = static_cast<double>(by_length.size());
  const double weights = count * (count + 1) / 2;
  std::array<std::vector<WeightedCell>, 3> parts;
  double place = 0;
  for (const auto& [length, entries] : by_length) {
    const double shares[] = {1 / count, (place + 1) / weights, (count - place) / weights};
    for (size_t i = 0; i < parts.size(); i++) {
      const std::vector<WeightedCell> more = Weighted(entries, cells, shares[i]);
      parts[i].insert(parts[i].end(), more.begin(), more.end());
    }
    place += 1;
  }
  for (size_t i = 0; i < parts.size(); i++) row.bounds[i] = BoundsOfMean(parts[i]);
}

RulerRowSummary RowOf(const ByLength& by_length, const std::vector<Cell>& cells) {
  RulerRowSummary row;
  std::vector<scoring::LengthMean> means;
  row.complete = true;
  for (const auto& [length, entries] : by_length) {
    row.lengths.push_back(MeanOf(entries, cells));
    row.complete = row.complete && row.lengths.back().complete;
    if (row.lengths.back().mean.has_value()) means.push_back({.length = length, .mean = *row.lengths.back().mean});
  }
  if (means.size() == by_length.size()) row.means = scoring::RulerMeansOf(means);
  FillBounds(by_length, cells, row);
  return row;
}

}  // namespace

std::vector<RulerSummary> RulerSummaries(const std::vector<SweepEntry>& entries,
                                         const std::vector<std::vector<Cell>>& cells) {
  std::vector<std::string> settings;  // in sweep order
  std::map<std::string, ByLength> groups;
  for (size_t e = 0; e < entries.size(); e++) {
    const std::optional<std::string> setting = SettingOf(entries[e]);
    if (!setting.has_value()) continue;
    if (!groups.contains(*setting)) settings.push_back(*setting);
    groups[*setting][scoring::ParseRulerCell(entries[e].benchmark.name)->length].push_back(e);
  }
  std::vector<RulerSummary> summaries;
  for (const std::string& setting : settings) {
    RulerSummary& summary = summaries.emplace_back();
    summary.setting = setting;
    for (const auto& [length, of_length] : groups[setting]) {
      summary.lengths.push_back(length);
      summary.tasks.push_back(static_cast<int>(of_length.size()));
    }
    for (const std::vector<Cell>& row : cells) summary.rows.push_back(RowOf(groups[setting], row));
  }
  return summaries;
}

}  // namespace iha::reports
