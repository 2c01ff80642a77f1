// Rank uncertainty: the paper's rank rule on the data as they are, certainty and its absence, shared resamples.
#include "benchmarks/scoring/stats_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "common/rng.h"

namespace iha::scoring {
namespace {

std::vector<double> Items(int ones, int items) {
  std::vector<double> values(static_cast<size_t>(items), 0.0);
  for (int i = 0; i < ones; ++i) values[static_cast<size_t>(i)] = 1.0;
  return values;
}

TEST(BootstrapRanks, RanksOfTheDataFollowThePapersRule) {
  // Second metric: the first two tie, the third has none. Averages: (1 + 1.5) / 2, (2 + 1.5) / 2, 3 / 1.
  const RankedBenchmark a{{{Items(9, 10), Items(6, 10), Items(1, 10)}}};
  const RankedBenchmark b{{{Items(5, 10), Items(5, 10), {}}}};
  const RankUncertainty ranks = BootstrapRanks({a, b}, {.draws = 100});
  EXPECT_EQ(ranks.average, (std::vector<double>{1.25, 1.75, 3.0}));
}

TEST(BootstrapRanks, FarApartIsCertainAndEqualIsEven) {
  const RankedBenchmark far{{{Items(95, 100), Items(50, 100), Items(5, 100)}}};
  const RankUncertainty sure = BootstrapRanks({far}, {.draws = 500});
  EXPECT_EQ(sure.same_order, 1.0);
  EXPECT_EQ(sure.above[0][2], 1.0);
  EXPECT_EQ(sure.low[1], 2.0);
  EXPECT_EQ(sure.high[1], 2.0);

  // The same items solved: every resample ties, since all models see the same one.
  const RankedBenchmark same{{{Items(40, 100), Items(40, 100)}}};
  const RankUncertainty tied = BootstrapRanks({same}, {.draws = 500});
  EXPECT_EQ(tied.above[0][1], 0.5);
  EXPECT_EQ(tied.low[0], 1.5);
  EXPECT_EQ(tied.high[0], 1.5);
  EXPECT_EQ(tied.above[0][0], 0.5);

  // As many, but others: either may come first.
  std::vector<double> other = Items(40, 100);
  std::reverse(other.begin(), other.end());
  const RankUncertainty open = BootstrapRanks({RankedBenchmark{{{Items(40, 100), other}}}}, {.draws = 2000});
  EXPECT_NEAR(open.above[0][1], 0.5, 0.04);
  EXPECT_EQ(open.low[0], 1.0);
  EXPECT_EQ(open.high[0], 2.0);
}

TEST(BootstrapRanks, EqualDataGiveEqualBits) {
  PhiloxStream random(4);
  RankedBenchmark benchmark;
  benchmark.values.resize(2, std::vector<std::vector<double>>(3));
  for (auto& metric : benchmark.values) {
    for (auto& model : metric) {
      for (int i = 0; i < 50; ++i) model.push_back(static_cast<double>(random.NextBelow(6)) / 5);
    }
  }
  const RankUncertainty once = BootstrapRanks({benchmark}, {.draws = 300});
  const RankUncertainty again = BootstrapRanks({benchmark}, {.draws = 300});
  EXPECT_EQ(once.above, again.above);
  EXPECT_EQ(once.low, again.low);
  EXPECT_NEAR(once.above[0][1] + once.above[1][0], 1.0, 1e-12);
}

// How often the interval of a model's average rank holds the rank that its true rates give, for rates that differ.
TEST(BootstrapRanks, IntervalsHoldTheTrueRank) {
  constexpr int kRuns = 200;
  PhiloxStream random(8);
  int held = 0;
  for (int run = 0; run < kRuns; ++run) {
    const double rates[] = {0.55, 0.5, 0.4};
    RankedBenchmark benchmark{{std::vector<std::vector<double>>(3)}};
    for (int i = 0; i < 150; ++i) {
      for (size_t m = 0; m < 3; ++m) benchmark.values[0][m].push_back(random.NextUniform() < rates[m] ? 1.0 : 0.0);
    }
    const RankUncertainty ranks = BootstrapRanks({benchmark}, {.draws = 300});
    held += ranks.low[1] <= 2.0 && 2.0 <= ranks.high[1] ? 1 : 0;
  }
  RecordProperty("coverage", std::to_string(static_cast<double>(held) / kRuns));
  EXPECT_GE(held, kRuns * 95 / 100 - 7);  // two standard errors below 95 %
}

}  // namespace
}  // namespace iha::scoring
