#include "reports/rank_spread.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "benchmarks/scoring/stats_ranks.h"
#include "reports/table.h"

namespace iha::reports {
namespace {

constexpr size_t kMostNamed = 8;  // rows in a note

// Items of one key are the same questions.
using ItemsKey = std::tuple<std::string, Digest, int64_t>;

// What each item of a complete cell adds to its mean.
std::vector<double> ValuesOf(const JobRows& job, const std::string& metric) {
  const auto& metrics = job.spec.entry.metrics;
  const auto at = static_cast<size_t>(std::find(metrics.begin(), metrics.end(), metric) - metrics.begin());
  std::vector<double> values;
  values.reserve(job.items.size());
  for (const ItemRow& item : job.items) {
    const bool scored =
        item.unscored == Unscored::kScored && at < item.values.size() && item.values[at].unscored == Unscored::kScored;
    const Score score = scored ? item.values[at].score : Score{};
    values.push_back(static_cast<double>(score.num) / static_cast<double>(score.den));
  }
  return values;
}

}  // namespace

std::optional<RankSpread> SpreadOfRanks(const Snapshot& snapshot, const Table& table) {
  const size_t models = snapshot.spec.models.size(), entries = snapshot.spec.entries.size();
  if (table.rows.size() < 2 || table.rows.size() != models) return std::nullopt;
  std::map<ItemsKey, scoring::RankedBenchmark> by_items;
  for (size_t c = 0; c < table.columns.size(); c++) {
    const Column& column = table.columns[c];
    std::vector<std::vector<double>> values(models);
    for (size_t m = 0; m < models; m++) {
      if (!table.rows[m].cells[c].rank.has_value()) continue;
      values[m] = ValuesOf(snapshot.jobs[m * entries + column.entry], column.metric);
    }
    if (std::all_of(values.begin(), values.end(), [](const auto& v) { return v.empty(); })) continue;
    const JobSpec& job = snapshot.jobs[column.entry].spec;
    by_items[{job.entry.benchmark.name, job.data_digest, job.items}].values.push_back(std::move(values));
  }
  if (by_items.empty()) return std::nullopt;
  std::vector<scoring::RankedBenchmark> benchmarks;
  for (auto& [key, benchmark] : by_items) benchmarks.push_back(std::move(benchmark));
  RankSpread spread;
  scoring::RankUncertainty found =
      scoring::BootstrapRanks(benchmarks, {.confidence = spread.level, .seed = spread.seed, .draws = spread.draws});
  spread.low = std::move(found.low);
  spread.high = std::move(found.high);
  spread.above = std::move(found.above);
  spread.same_order = found.same_order;
  return spread;
}

// Whole percent, but 0 and 100 only where nothing else was drawn.
int PercentOf(double share) {
  if (share <= 0.0 || share >= 1.0) return share <= 0.0 ? 0 : 100;
  return std::clamp(static_cast<int>(std::lround(100.0 * share)), 1, 99);
}

std::string RankSpreadNote(const Table& table, const RankSpread& spread) {
  std::vector<std::string> ranges;
  for (size_t m = 0; m < table.rows.size(); m++) {
    if (!table.rows[m].average_rank.has_value()) continue;
    ranges.push_back(fmt::format("{} {:.1f} to {:.1f}", table.rows[m].model, spread.low[m], spread.high[m]));
  }
  const std::string each =
      ranges.size() > kMostNamed ? "" : fmt::format("95 % of them give {}; ", fmt::join(ranges, ", "));
  return fmt::format("Avg. Rank: items resampled {} times, for all rows alike: {}the printed order holds in {} %",
                     spread.draws, each, PercentOf(spread.same_order));
}

}  // namespace iha::reports
