#include "benchmarks/scoring/stats_fixed_list.h"

#include <algorithm>
#include <vector>

namespace iha::scoring {
namespace {

constexpr int64_t kMinUnequal = 30;  // items with unequal grades, below which their variances tell too little

struct Moments {
  double mean = 0.0;
  double between = 0.0;  // variance of the values, with n - 1
  double within = 0.0;   // mean of m (1 - m)
  int64_t unequal = 0;   // items whose grades are not all 0 or all 1
  bool zero_one = true;
};

Moments MomentsOf(const std::vector<double>& values) {
  Moments moments;
  const auto n = static_cast<double>(values.size());
  for (const double value : values) {
    moments.mean += value;
    moments.within += value * (1.0 - value);
    const bool unequal = value > 0.0 && value < 1.0;
    moments.unequal += unequal ? 1 : 0;
    moments.zero_one = moments.zero_one && !unequal;
  }
  moments.mean /= n;
  moments.within /= n;
  for (const double value : values) moments.between += (value - moments.mean) * (value - moments.mean);
  moments.between = values.size() > 1 ? moments.between / (n - 1.0) : 0.0;
  return moments;
}

}  // namespace

std::optional<Interval> FixedListInterval(std::span<const Score> item_values, const FixedList& list,
                                          const IntervalOptions& options) {
  if (list.drawn && list.samples < 2) return std::nullopt;
  if (item_values.empty()) return Interval{};
  std::vector<double> values;
  values.reserve(item_values.size());
  for (const Score& value : item_values) {
    values.push_back(static_cast<double>(value.num) / static_cast<double>(value.den));
  }
  const Moments moments = MomentsOf(values);
  const auto n = static_cast<double>(values.size());
  const double share = std::min(1.0, n / static_cast<double>(list.items));  // of the list that was run
  const bool whole = static_cast<int64_t>(values.size()) >= list.items;
  if (whole && !list.drawn) return Interval{moments.mean, moments.mean, IntervalMethod::kExact};

  const double k = list.samples;
  double effective = 0.0;
  if (!list.drawn && moments.zero_one) {
    effective = n / (1.0 - share);
  } else if (whole && moments.unequal < kMinUnequal) {
    effective = n * k;
  } else if (!whole && UncommonItems(item_values) < options.min_uncommon) {
    return BettingInterval(values, options);
  } else {
    const double sampling = list.drawn ? share * moments.within / (n * (k - 1.0)) : 0.0;
    effective = moments.mean * (1.0 - moments.mean) / ((1.0 - share) * moments.between / n + sampling);
  }
  Interval interval = WilsonInterval(moments.mean, effective, options.confidence);
  interval.method = IntervalMethod::kWilsonEffective;
  return interval;
}

}  // namespace iha::scoring
