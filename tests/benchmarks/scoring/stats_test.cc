// Cell intervals: known values, the choice of method, equal bytes, and coverage by simulation.
#include "benchmarks/scoring/stats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "benchmarks/scoring/stats_math.h"
#include "common/rng.h"

namespace iha::scoring {
namespace {

std::vector<Score> ZeroOne(int ones, int items) {
  std::vector<Score> values(static_cast<size_t>(items));
  for (int i = 0; i < ones; ++i) values[static_cast<size_t>(i)] = {1, 1};
  return values;
}

TEST(StatsMath, AgreesWithTheLibrary) {
  for (const double x : {1e-300, 1e-9, 0.3, 0.5, 0.70710678, 1.0, 2.0, 40.0, 1e200}) {
    EXPECT_NEAR(NaturalLog(x), std::log(x), 1e-12 * (1 + std::fabs(std::log(x))));
  }
  // exp is squared ten times: 2^10 roundings of 1.1e-16, twice that. Behind -3 relative to the value: a p-value of
  // 1e-14 is one.
  constexpr double kExp = 2.5e-13;
  for (const double x : {-8.0, -7.7, -6.0, -5.0, -3.001, -3.0, -2.999, -1.96, -0.1, 0.0, 0.7, 3.0, 3.001, 8.0}) {
    const double want = 0.5 * std::erfc(-x / std::sqrt(2.0));
    EXPECT_NEAR(NormalCdf(x), want, kExp * (x < -3.0 ? want : 0.5)) << x;
  }
  EXPECT_NEAR(NormalQuantile(0.975), 1.959963984540054, 1e-11);  // published value
  EXPECT_NEAR(NormalQuantile(0.05), -1.644853626951473, 1e-11);
}

TEST(CellInterval, WilsonKnownValues) {
  // 15 of 50 at 95 %: Wilson's formula in 40-digit arithmetic gives [0.19103..., 0.43750...].
  const Interval interval = CellInterval(ZeroOne(15, 50), {.single_sample = true});
  EXPECT_EQ(interval.method, IntervalMethod::kWilson);
  const double z = 1.959963984540054, n = 50, p = 0.3;
  const double half = z / (1 + z * z / n) * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  const double centre = (p + z * z / (2 * n)) / (1 + z * z / n);
  EXPECT_NEAR(interval.low, centre - half, 1e-12);
  EXPECT_NEAR(interval.high, centre + half, 1e-12);
  const Interval none = CellInterval(ZeroOne(0, 1319), {.single_sample = true});
  EXPECT_EQ(none.low, 0.0);
  EXPECT_NEAR(none.high, z * z / (1319 + z * z), 1e-12);  // the bound at zero successes in closed form
  EXPECT_EQ(CellInterval(ZeroOne(4, 4), {.single_sample = true}).high, 1.0);
}

TEST(CellInterval, ChoosesItsMethodAndNeverHasZeroWidth) {
  EXPECT_EQ(CellInterval({}, {}), Interval{});
  EXPECT_EQ(CellInterval(ZeroOne(9, 100), {}).method, IntervalMethod::kBetting);
  EXPECT_EQ(CellInterval(ZeroOne(10, 100), {.draws = 500}).method, IntervalMethod::kBootstrapT);
  EXPECT_EQ(CellInterval(ZeroOne(95, 100), {}).method, IntervalMethod::kBetting);
  std::vector<Score> fractions = ZeroOne(40, 100);
  fractions[99] = {1, 3};
  EXPECT_EQ(CellInterval(fractions, {.single_sample = true, .draws = 500}).method, IntervalMethod::kBootstrapT);
  for (const int items : {1, 2, 24, 1319}) {
    for (const Score value : {Score{0, 1}, Score{1, 3}, Score{1, 1}}) {
      const Interval interval = CellInterval(std::vector<Score>(static_cast<size_t>(items), value), {});
      const double mean = static_cast<double>(value.num) / static_cast<double>(value.den);
      EXPECT_LT(interval.low, interval.high) << items;
      EXPECT_LE(interval.low, mean);
      EXPECT_GE(interval.high, mean);
      EXPECT_GE(interval.low, 0.0);
      EXPECT_LE(interval.high, 1.0);
    }
  }
}

TEST(CellInterval, EqualDataGiveEqualBitsAndSeedsMatter) {
  PhiloxStream random(3);
  std::vector<Score> values;
  for (int i = 0; i < 200; ++i) values.push_back({static_cast<int64_t>(random.NextBelow(6)), 5});
  const IntervalOptions options{.draws = 1000};
  EXPECT_EQ(CellInterval(values, options), CellInterval(values, options));
  IntervalOptions other = options;
  other.seed = 99;
  EXPECT_NE(CellInterval(values, options), CellInterval(values, other));
  IntervalOptions wider = options;
  wider.confidence = 0.99;
  EXPECT_LT(CellInterval(values, wider).low, CellInterval(values, options).low);
}

TEST(CellInterval, BettingIsNarrowWhereTheDataAreClear) {
  // The bound at 0 of 1319: each item multiplies the wealth by at most 1 + m / (2 (1 - m)), so no bound can lie below
  // 2 ln(2 / alpha) / 1319 = 0.0056; 0.01 says that both directions bet.
  const std::vector<double> zeros(1319, 0.0), ones(1319, 1.0);
  EXPECT_LT(BettingInterval(zeros, {}).high, 0.01);
  EXPECT_GT(BettingInterval(ones, {}).low, 0.99);
}

// Items with k samples: an item's rate is drawn, then its samples. Returns the share of intervals that hold the mean.
struct Coverage {
  double share = 0.0;
  double mean_width = 0.0;
};
Coverage Simulate(int runs, int items, int k, bool hard, const IntervalOptions& options) {
  PhiloxStream random(2024);
  int covered = 0;
  double width = 0.0;
  for (int run = 0; run < runs; ++run) {
    std::vector<Score> values;
    for (int item = 0; item < items; ++item) {
      // Rate u, or u^4 with mean 1/5 (most items nearly hopeless), u uniform.
      const double u = random.NextUniform();
      const double rate = hard ? u * u * u * u : u;
      int64_t right = 0;
      for (int s = 0; s < k; ++s) right += random.NextUniform() < rate ? 1 : 0;
      values.push_back({right, k});
    }
    const Interval interval = CellInterval(values, options);
    const double truth = hard ? 0.2 : 0.5;
    covered += interval.low <= truth && truth <= interval.high ? 1 : 0;
    width += interval.high - interval.low;
  }
  return {static_cast<double>(covered) / runs, width / runs};
}

TEST(CellInterval, BootstrapTCoversItsConfidence) {
  constexpr int kRuns = 400;
  // Two standard errors of a share of 0.95 over 400 runs are 0.022; bootstrap-t at n >= 100 errs by about 1/n on top.
  constexpr double kSlack = 0.022 + 0.01;
  const IntervalOptions options{.draws = 400};
  for (const bool hard : {false, true}) {
    const Coverage coverage = Simulate(kRuns, 100, 5, hard, options);
    EXPECT_GE(coverage.share, 0.95 - kSlack) << hard;
    EXPECT_LE(coverage.mean_width, 0.2) << hard;  // 4 sd / sqrt(n) with sd <= 0.36: useful, not just safe
  }
}

// Against bootstrap-t written once more, with another generator, on skewed values: there the two tails of t differ by
// more than a standard error, and so do bounds that are mirrored, of percentiles, or of a normal distribution.
TEST(CellInterval, BootstrapTBoundsOfSkewedValues) {
  std::vector<Score> scores(100, Score{0, 1});
  for (size_t i = 0; i < 12; ++i) scores[7 * i] = {i < 3 ? 1 : 2, i < 3 ? 1 : 5};
  std::vector<double> values;
  for (const Score& score : scores) values.push_back(static_cast<double>(score.num) / static_cast<double>(score.den));
  const auto moments = [](const std::vector<double>& of) {
    double sum = 0.0, squares = 0.0;
    for (const double x : of) sum += x;
    const double mean = sum / static_cast<double>(of.size());
    for (const double x : of) squares += (x - mean) * (x - mean);
    return std::pair(mean, std::sqrt(squares / static_cast<double>(of.size() - 1) / static_cast<double>(of.size())));
  };
  const auto [mean, se] = moments(values);
  std::mt19937_64 random(11);
  std::vector<double> t;
  constexpr int kDraws = 40000;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::vector<double> resample;
    for (size_t i = 0; i < values.size(); ++i) resample.push_back(values[random() % values.size()]);
    const auto [m, s] = moments(resample);
    t.push_back(s > 0.0 ? (m - mean) / s : 0.0);
  }
  std::sort(t.begin(), t.end());
  const double t_low = t[kDraws / 40], t_high = t[kDraws - kDraws / 40];
  ASSERT_GT(-t_low - t_high, 1.0);  // skewed: what is wrong in one of the ways above is wrong by half a se and more
  const Interval interval = CellInterval(scores, {});
  ASSERT_EQ(interval.method, IntervalMethod::kBootstrapT);
  // A quantile of 10,000 and 40,000 draws: 3 sqrt(0.025 0.975 (1/10000 + 1/40000)) / density; t's density there is
  // above 0.03, so 0.2, in standard errors.
  EXPECT_NEAR(interval.low, mean - t_high * se, 0.2 * se);
  EXPECT_NEAR(interval.high, mean - t_low * se, 0.2 * se);
}

TEST(CellInterval, WilsonCoversItsConfidence) {
  const Coverage coverage = Simulate(2000, 50, 1, true, {.single_sample = true});
  EXPECT_GE(coverage.share, 0.95 - 0.015);  // Wilson's coverage oscillates by about 0.01 around its confidence
}

TEST(CellInterval, BettingIsValidOnRareValues) {
  // 3 % of the items are right in all samples: fewer than 10 of 100 differ nearly always.
  PhiloxStream random(5);
  int covered = 0;
  constexpr int kRuns = 500;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> values;
    for (int i = 0; i < 100; ++i) values.push_back(random.NextUniform() < 0.03 ? 1.0 : 0.0);
    const Interval interval = BettingInterval(values, {});
    covered += interval.low <= 0.03 && 0.03 <= interval.high ? 1 : 0;
  }
  EXPECT_GE(static_cast<double>(covered) / kRuns, 0.95);  // the guarantee is finite-sample: no slack
}

}  // namespace
}  // namespace iha::scoring
