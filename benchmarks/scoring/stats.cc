#include "benchmarks/scoring/stats.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "benchmarks/scoring/stats_betting.h"
#include "benchmarks/scoring/stats_math.h"
#include "benchmarks/scoring/stats_resample.h"
#include "common/philox.h"
#include "common/rng.h"

namespace iha::scoring {
namespace {

double Clamp(double x) { return std::min(1.0, std::max(0.0, x)); }

}  // namespace

const char* NameOf(IntervalMethod method) {
  switch (method) {
    case IntervalMethod::kNone:
      return "none";
    case IntervalMethod::kWilson:
      return "wilson";
    case IntervalMethod::kBootstrapT:
      return "bootstrap_t";
    case IntervalMethod::kBetting:
      return "betting";
    case IntervalMethod::kWilsonEffective:
      return "wilson_effective";
    case IntervalMethod::kExact:
      return "exact";
  }
  return "none";
}

int64_t UncommonItems(std::span<const Score> item_values) {
  std::map<std::pair<int64_t, int64_t>, int64_t> counts;
  int64_t most = 0;
  for (const Score& value : item_values) most = std::max(most, ++counts[{value.num, value.den}]);
  return static_cast<int64_t>(item_values.size()) - most;
}

Interval WilsonInterval(double share, double items, double confidence) {
  const double z = NormalQuantile(0.5 + 0.5 * confidence);
  const double n = items;
  const double p = share;
  const double shrink = 1.0 + z * z / n;
  const double centre = (p + z * z / (2.0 * n)) / shrink;
  const double half = z / shrink * std::sqrt(p * (1.0 - p) / n + z * z / (4.0 * n * n));
  // At 0 and n successes the bound is exactly 0 or 1; rounding must not say otherwise.
  return {share == 0.0 ? 0.0 : Clamp(centre - half), share == 1.0 ? 1.0 : Clamp(centre + half),
          IntervalMethod::kWilson};
}

Interval BootstrapTInterval(std::span<const double> values, const IntervalOptions& options) {
  const size_t items = values.size();
  const auto n = static_cast<double>(items);
  double mean = 0.0;
  for (const double value : values) mean += value;
  mean /= n;
  std::vector<double> centred;
  centred.reserve(items);
  double squares = 0.0;
  for (const double value : values) {
    centred.push_back(value - mean);
    squares += centred.back() * centred.back();
  }
  const double variance = squares / (n - 1.0);
  if (items < 2 || !(variance > 0.0)) return BettingInterval(values, options);

  std::vector<double> statistics;
  statistics.reserve(static_cast<size_t>(options.draws));
  const uint64_t blocks = (items + 3) / 4;
  for (uint64_t draw = 0; draw < static_cast<uint64_t>(options.draws); ++draw) {
    double sum = 0.0, sum_squares = 0.0;
    size_t left = items;
    for (uint64_t block = 0; block < blocks; ++block) {
      const PhiloxBlock random = Philox4x32(options.seed, block, draw);
      for (size_t word = 0; word < 4 && left > 0; ++word, --left) {
        // Multiply-shift: an index's probability is off by at most 2^-32.
        const double value = centred[static_cast<uint64_t>(random.word[word]) * items >> 32];
        sum += value;
        sum_squares += value * value;
      }
    }
    statistics.push_back(StudentizedMean(sum, sum_squares, n, 1e-12 * variance));
  }
  std::sort(statistics.begin(), statistics.end());
  const double tail = 0.5 * (1.0 - options.confidence);
  const auto rank = static_cast<size_t>(std::max(1.0, std::floor((options.draws + 1.0) * tail)));
  const double t_low = statistics[rank - 1];
  const double t_high = statistics[statistics.size() - rank];
  const double se = std::sqrt(variance / n);
  const Interval interval{Clamp(mean - t_high * se), Clamp(mean - t_low * se), IntervalMethod::kBootstrapT};
  return interval.low < interval.high ? interval : BettingInterval(values, options);
}

Interval BettingInterval(std::span<const double> values, const IntervalOptions& options) {
  // The guarantee is for exchangeable items; files are not (hard ones may stand last), hence the seeded shuffle.
  std::vector<double> shuffled(values.begin(), values.end());
  PhiloxStream(options.seed).Shuffle(shuffled);
  double mean = 0.0;
  for (const double value : shuffled) mean += value;
  mean /= static_cast<double>(shuffled.size());

  const double alpha = 0.5 * (1.0 - options.confidence);  // of each direction
  const double low = std::min(mean, BettingBound(shuffled, BetSide::kAbove, alpha));
  const double high = std::max(mean, BettingBound(shuffled, BetSide::kBelow, alpha));
  if (!(low < high)) return {0.0, 1.0, IntervalMethod::kBetting};
  return {low, high, IntervalMethod::kBetting};
}

Interval CellInterval(std::span<const Score> item_values, const IntervalOptions& options) {
  if (item_values.empty()) return {};
  int64_t ones = 0, zeros = 0;
  std::vector<double> values;
  values.reserve(item_values.size());
  for (const Score& value : item_values) {
    ones += value.num == value.den ? 1 : 0;
    zeros += value.num == 0 ? 1 : 0;
    values.push_back(static_cast<double>(value.num) / static_cast<double>(value.den));
  }
  const auto items = static_cast<int64_t>(item_values.size());
  if (options.single_sample && ones + zeros == items) {
    const auto n = static_cast<double>(items);
    return WilsonInterval(static_cast<double>(ones) / n, n, options.confidence);
  }
  if (UncommonItems(item_values) < options.min_uncommon) return BettingInterval(values, options);
  return BootstrapTInterval(values, options);
}

}  // namespace iha::scoring
