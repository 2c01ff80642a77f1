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

RulerLength MeanOf(const std::vector<size_t>& entries, const std::vector<Cell>& cells) {
  RulerLength length{.mean = std::nullopt, .complete = true};
  Rational sum;
  for (const size_t e : entries) {
    if (!cells[e].value.has_value()) return {.mean = std::nullopt, .complete = false};
    sum += *cells[e].value;
    length.complete = length.complete && cells[e].complete();
  }
  length.mean = sum / Rational(static_cast<int64_t>(entries.size()));
  return length;
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
