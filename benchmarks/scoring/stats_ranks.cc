#include "benchmarks/scoring/stats_ranks.h"

#include <algorithm>
#include <cmath>

#include "common/philox.h"

namespace iha::scoring {
namespace {

// Sums over equally many items that are nearer than this are ties: their values are fractions, rounded one by one.
constexpr double kTie = 1e-9;

struct RankSum {
  double sum = 0.0;
  int64_t metrics = 0;
  double average() const { return metrics == 0 ? 0.0 : sum / static_cast<double>(metrics); }
};

// Adds each model's rank in one metric; `totals` of models without it are not looked at.
void AddRanks(const std::vector<double>& totals, const std::vector<bool>& has, std::vector<RankSum>& ranks) {
  for (size_t m = 0; m < totals.size(); ++m) {
    if (!has[m]) continue;
    double rank = 0.5;
    for (size_t other = 0; other < totals.size(); ++other) {
      if (!has[other]) continue;
      const double ahead = totals[other] - totals[m];
      rank += std::fabs(ahead) <= kTie ? 0.5 : (ahead > 0 ? 1.0 : 0.0);
    }
    ranks[m].sum += rank;
    ++ranks[m].metrics;
  }
}

size_t ItemsOf(const RankedBenchmark& benchmark) {
  for (const auto& metric : benchmark.values) {
    for (const auto& model : metric) {
      if (!model.empty()) return model.size();
    }
  }
  return 0;
}

// How often each item stands in a resample of `items` items.
void Resample(uint64_t seed, uint64_t draw, uint64_t items, std::vector<double>& times) {
  times.assign(items, 0.0);
  size_t left = items;
  for (uint64_t block = 0; left > 0; ++block) {
    const PhiloxBlock random = Philox4x32(seed, block, draw);
    for (size_t word = 0; word < 4 && left > 0; ++word, --left) {
      // Multiply-shift: an index's probability is off by at most 2^-32.
      times[static_cast<uint64_t>(random.word[word]) * items >> 32] += 1.0;
    }
  }
}

void AddBenchmark(const RankedBenchmark& benchmark, const std::vector<double>& times, std::vector<RankSum>& ranks) {
  for (const auto& metric : benchmark.values) {
    std::vector<double> totals(metric.size(), 0.0);
    std::vector<bool> has(metric.size(), false);
    for (size_t m = 0; m < metric.size(); ++m) {
      has[m] = !metric[m].empty();
      for (size_t i = 0; i < metric[m].size(); ++i) totals[m] += times[i] * metric[m][i];
    }
    AddRanks(totals, has, ranks);
  }
}

std::vector<double> Averages(const std::vector<RankSum>& ranks) {
  std::vector<double> averages;
  for (const RankSum& rank : ranks) averages.push_back(rank.average());
  return averages;
}

bool SameOrder(const std::vector<double>& printed, const std::vector<double>& drawn) {
  for (size_t a = 0; a < printed.size(); ++a) {
    for (size_t b = 0; b < printed.size(); ++b) {
      if (printed[a] < printed[b] && drawn[a] > drawn[b]) return false;
    }
  }
  return true;
}

}  // namespace

RankUncertainty BootstrapRanks(const std::vector<RankedBenchmark>& benchmarks, const RankOptions& options) {
  size_t models = 0;
  for (const RankedBenchmark& benchmark : benchmarks) {
    for (const auto& metric : benchmark.values) models = std::max(models, metric.size());
  }
  RankUncertainty result;
  std::vector<RankSum> ranks(models);
  for (const RankedBenchmark& benchmark : benchmarks) {
    AddBenchmark(benchmark, std::vector<double>(ItemsOf(benchmark), 1.0), ranks);
  }
  result.average = Averages(ranks);
  result.above.assign(models, std::vector<double>(models, 0.0));

  std::vector<std::vector<double>> drawn(models);
  std::vector<double> times;
  for (uint64_t draw = 0; draw < static_cast<uint64_t>(options.draws); ++draw) {
    std::fill(ranks.begin(), ranks.end(), RankSum{});
    for (size_t b = 0; b < benchmarks.size(); ++b) {
      // Each benchmark has a stream of its own: the draws of one say nothing about those of another.
      Resample(options.seed, draw << 16 | b, ItemsOf(benchmarks[b]), times);
      AddBenchmark(benchmarks[b], times, ranks);
    }
    const std::vector<double> averages = Averages(ranks);
    for (size_t a = 0; a < models; ++a) {
      drawn[a].push_back(averages[a]);
      for (size_t b = 0; b < models; ++b) {
        result.above[a][b] += averages[a] < averages[b] ? 1.0 : (averages[a] == averages[b] ? 0.5 : 0.0);
      }
    }
    result.same_order += SameOrder(result.average, averages) ? 1.0 : 0.0;
  }
  const double tail = 0.5 * (1.0 - options.confidence);
  for (size_t m = 0; m < models; ++m) {
    std::sort(drawn[m].begin(), drawn[m].end());
    const auto cut = static_cast<size_t>(std::floor(tail * options.draws));
    result.low.push_back(drawn[m][cut]);
    result.high.push_back(drawn[m][drawn[m].size() - 1 - cut]);
    for (double& share : result.above[m]) share /= options.draws;
  }
  result.same_order /= options.draws;
  return result;
}

}  // namespace iha::scoring
