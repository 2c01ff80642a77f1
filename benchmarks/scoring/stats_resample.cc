#include "benchmarks/scoring/stats_resample.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "common/philox.h"

namespace iha::scoring {
namespace {

// Cumulative probabilities of Binomial(n, share), from its mode outwards by ratios, so that no logarithm is needed.
std::vector<double> BinomialCumulative(size_t n, double share) {
  std::vector<double> mass(n + 1, 0.0);
  const auto mode = std::min(n, static_cast<size_t>(share * static_cast<double>(n + 1)));
  const double odds = share / (1.0 - share);
  mass[mode] = 1.0;
  for (size_t k = mode; k > 0; --k) {
    mass[k - 1] = mass[k] * static_cast<double>(k) / (static_cast<double>(n - k + 1) * odds);
  }
  for (size_t k = mode; k < n; ++k) {
    mass[k + 1] = mass[k] * static_cast<double>(n - k) * odds / static_cast<double>(k + 1);
  }
  double total = 0.0;
  for (const double m : mass) total += m;
  double sum = 0.0;
  for (double& m : mass) {
    sum += m;
    m = sum / total;
  }
  return mass;
}

struct Split {
  double common = 0.0;         // the most common value, centred
  std::vector<double> others;  // the other items' values, centred
  double variance = 0.0;       // of all, with n - 1
};

Split SplitCommon(std::span<const double> values) {
  std::map<double, size_t> counts;
  double mean = 0.0;
  for (const double value : values) {
    mean += value;
    ++counts[value];
  }
  mean /= static_cast<double>(values.size());
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  Split split;
  split.common = most->first - mean;
  for (const auto& [value, count] : counts) {
    split.variance += static_cast<double>(count) * (value - mean) * (value - mean);
    if (value != most->first) split.others.insert(split.others.end(), count, value - mean);
  }
  split.variance /= static_cast<double>(values.size()) - 1.0;
  return split;
}

}  // namespace

double StudentizedMean(double sum, double sum_squares, double n, double variance_floor) {
  const double variance = (sum_squares - sum * sum / n) / (n - 1.0);
  if (variance > variance_floor) return sum / std::sqrt(n * variance);
  if (std::fabs(sum) <= n * std::sqrt(variance_floor)) return 0.0;
  return sum > 0 ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
}

std::vector<double> StudentizedResamples(std::span<const double> values, uint64_t seed, int32_t draws) {
  const Split split = SplitCommon(values);
  const auto n = static_cast<double>(values.size());
  const auto others = static_cast<uint64_t>(split.others.size());
  const std::vector<double> cumulative = BinomialCumulative(values.size(), static_cast<double>(others) / n);
  std::vector<double> statistics;
  statistics.reserve(static_cast<size_t>(draws));
  for (uint64_t draw = 0; draw < static_cast<uint64_t>(draws); ++draw) {
    // Block 0 of the draw decides how many are not the common value, the blocks after it which.
    const double u = PhiloxUniform(Philox4x32(seed, 0, draw));
    const auto drawn =
        static_cast<size_t>(std::lower_bound(cumulative.begin(), cumulative.end() - 1, u) - cumulative.begin());
    const double common = n - static_cast<double>(drawn);
    double sum = 0.0, squares = 0.0;
    for (size_t left = drawn, block = 1; left > 0; ++block) {
      const PhiloxBlock random = Philox4x32(seed, block, draw);
      for (size_t word = 0; word < 4 && left > 0; ++word, --left) {
        // Multiply-shift: an index's probability is off by at most 2^-32.
        const double value = split.others[static_cast<uint64_t>(random.word[word]) * others >> 32];
        sum += value;
        squares += value * value;
      }
    }
    sum += common * split.common;
    squares += common * split.common * split.common;
    statistics.push_back(StudentizedMean(sum, squares, n, 1e-12 * split.variance));
  }
  std::sort(statistics.begin(), statistics.end());
  return statistics;
}

}  // namespace iha::scoring
