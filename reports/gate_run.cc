#include "reports/gate_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "benchmarks/scoring/stats_paired.h"
#include "common/errors.h"

namespace iha::reports {

Margin AutoMargin(const GateEntry& entry, const GateMetric& metric, const MarginRule& rule) {
  const bool measured = metric.within_variance.has_value() && *metric.within_variance > 0;
  const double variance = measured ? 2.0 * *metric.within_variance / entry.sampling.samples : rule.discordance;
  const double margin = scoring::MinimumDetectableEffect(std::sqrt(variance), entry.planned, rule.alpha, rule.power);
  return {std::min(1.0, margin),  // a handful of items can't lose more than all
          measured ? "within_item_variance" : "assumed_discordance"};
}

void FixMargins(GateRun& baseline, const MarginRule& rule) {
  baseline.margin_rule = rule;
  for (GateEntry& entry : baseline.entries) {
    for (GateMetric& metric : entry.metrics) {
      if (!metric.margin.has_value()) metric.margin = AutoMargin(entry, metric, rule);
    }
  }
}

std::vector<NamedEntry> Named(const GateRun& run) {
  std::vector<NamedEntry> named;
  for (const GateEntry& entry : run.entries) {
    std::vector<std::string> metrics;
    for (const GateMetric& metric : entry.metrics) metrics.push_back(metric.name);
    const std::string items = fmt::format("{}", entry.planned);
    named.push_back(Named(entry.benchmark, entry.sampling, {"items", items}, std::move(metrics)));
    if (entry.stop_settled_votes) named.back().settings["stop_settled_votes"] = "yes";
  }
  return named;
}

absl::Status CheckUnstopped(const std::optional<uint64_t>& item_order, const std::string& sweep,
                            const std::string& advice) {
  if (!item_order.has_value()) return absl::OkStatus();
  return FailedPrecondition(
      "{} has an item_order: it may be stopped by what it shows, so that only the sequential verdict holds; {}", sweep,
      advice);
}

}  // namespace iha::reports
