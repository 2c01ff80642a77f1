// Intervals about a fixed list of items: which rule where, and coverage by simulation.
#include "benchmarks/scoring/stats_fixed_list.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "common/rng.h"

namespace iha::scoring {
namespace {

std::vector<Score> Repeated(Score value, int times) { return std::vector<Score>(static_cast<size_t>(times), value); }

std::vector<Score> Joined(std::vector<Score> a, const std::vector<Score>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

double Width(const Interval& interval) { return interval.high - interval.low; }

TEST(FixedListInterval, ChoosesItsMethod) {
  const std::vector<Score> halves = Joined(Repeated({1, 1}, 50), Repeated({0, 1}, 50));
  const auto method = [](const std::vector<Score>& values, const FixedList& list) {
    const auto interval = FixedListInterval(values, list, {});
    return interval.has_value() ? interval->method : IntervalMethod::kNone;
  };
  // Greedy over the whole list: the value is the answer.
  const auto exact = FixedListInterval(halves, {.items = 100, .samples = 1, .drawn = false}, {});
  EXPECT_EQ(exact->method, IntervalMethod::kExact);
  EXPECT_EQ(exact->low, 0.5);
  EXPECT_EQ(exact->high, 0.5);
  EXPECT_EQ(method(halves, {.items = 200, .samples = 1, .drawn = false}), IntervalMethod::kWilsonEffective);
  // One random sample an item does not tell its scatter.
  EXPECT_FALSE(FixedListInterval(halves, {.items = 100, .samples = 1, .drawn = true}, {}).has_value());
  EXPECT_EQ(method(halves, {.items = 100, .samples = 2, .drawn = true}), IntervalMethod::kWilsonEffective);
  const std::vector<Score> few = Joined(Repeated({1, 1}, 95), Repeated({1, 2}, 5));
  EXPECT_EQ(method(few, {.items = 300, .samples = 2, .drawn = true}), IntervalMethod::kBetting);
  EXPECT_EQ(method(few, {.items = 100, .samples = 2, .drawn = true}), IntervalMethod::kWilsonEffective);
  EXPECT_EQ(method({}, {.items = 100, .samples = 2, .drawn = true}), IntervalMethod::kNone);
}

TEST(FixedListInterval, IsTheFormulaOfTheContract) {
  // 60 of 100 items, 40 with 3 of 4 right and 20 with 1 of 4: s_within^2 = 4/3 * 3/16 = 1/4 for each.
  const std::vector<Score> values = Joined(Repeated({3, 4}, 40), Repeated({1, 4}, 20));
  const double p = (40 * 0.75 + 20 * 0.25) / 60, share = 0.6;
  const double between = (40 * (0.75 - p) * (0.75 - p) + 20 * (0.25 - p) * (0.25 - p)) / 59;
  const double variance = (1 - share) * between / 60 + share / (60 * 60.0) * 60 * 0.25 / 4;
  const auto found = FixedListInterval(values, {.items = 100, .samples = 4, .drawn = true}, {});
  const Interval expected = WilsonInterval(p, p * (1 - p) / variance, 0.95);
  EXPECT_NEAR(found->low, expected.low, 1e-12);
  EXPECT_NEAR(found->high, expected.high, 1e-12);
  // Of greedy grades n / (1 - n/N) are as good as so many of a wider world.
  const std::vector<Score> halves = Joined(Repeated({1, 1}, 30), Repeated({0, 1}, 30));
  const auto part = FixedListInterval(halves, {.items = 100, .samples = 1, .drawn = false}, {});
  const Interval greedy = WilsonInterval(0.5, 60 / 0.4, 0.95);
  EXPECT_NEAR(part->low, greedy.low, 1e-12);
  EXPECT_NEAR(part->high, greedy.high, 1e-12);
}

TEST(FixedListInterval, EqualGradesAreNoCertainty) {
  for (const Score value : {Score{0, 1}, Score{1, 1}}) {
    for (const int64_t list : {20, 1000}) {
      const auto interval = FixedListInterval(Repeated(value, 20), {.items = list, .samples = 4, .drawn = true}, {});
      EXPECT_GT(Width(*interval), 0.0);
      EXPECT_LE(interval->low, static_cast<double>(value.num));
      EXPECT_GE(interval->high, static_cast<double>(value.num));
    }
  }
}

// A list of N items of fixed rates; each run takes `run` of them at random and k samples of each. The share of
// intervals that hold the list's mean rate, and their mean width.
struct Setting {
  int items = 100;
  int run = 100;
  int k = 4;
  double open = 1.0;  // share of items whose rate is not 0 or 1
};
struct Coverage {
  double share = 0.0;
  double width = 0.0;
};
Coverage Simulate(const Setting& setting) {
  constexpr int kRuns = 2000;
  PhiloxStream random(7);
  std::vector<double> rates;
  double truth = 0.0;
  for (int i = 0; i < setting.items; ++i) {
    const bool open = i < setting.open * setting.items;
    rates.push_back(open ? random.NextUniform() : (i % 3 == 0 ? 0.0 : 1.0));
    truth += rates.back() / setting.items;
  }
  Coverage coverage;
  for (int run = 0; run < kRuns; ++run) {
    random.Shuffle(rates);
    std::vector<Score> values;
    for (int i = 0; i < setting.run; ++i) {
      int64_t right = 0;
      for (int s = 0; s < setting.k; ++s) right += random.NextUniform() < rates[static_cast<size_t>(i)] ? 1 : 0;
      values.push_back({right, setting.k});
    }
    const auto interval = FixedListInterval(values, {.items = setting.items, .samples = setting.k, .drawn = true}, {});
    coverage.share += interval->low <= truth && truth <= interval->high ? 1.0 / kRuns : 0.0;
    coverage.width += Width(*interval) / kRuns;
  }
  return coverage;
}

TEST(FixedListInterval, CoversTheListsMean) {
  // Two standard errors of a share of 0.95 over 2,000 runs are 0.01, and as much for the normal approximation behind
  // it.
  constexpr double kLeast = 0.95 - 0.02;
  for (const Setting& setting :
       {Setting{.items = 100, .run = 100, .k = 4}, Setting{.items = 100, .run = 100, .k = 16},
        Setting{.items = 500, .run = 500, .k = 2, .open = 0.1},
        Setting{.items = 500, .run = 500, .k = 16, .open = 0.04}, Setting{.items = 500, .run = 200, .k = 4},
        Setting{.items = 500, .run = 450, .k = 4}, Setting{.items = 500, .run = 100, .k = 8, .open = 0.2}}) {
    const Coverage coverage = Simulate(setting);
    const std::string name = std::to_string(setting.run) + "_of_" + std::to_string(setting.items) + "_k" +
                             std::to_string(setting.k) + "_open" + std::to_string(setting.open);
    RecordProperty(name, std::to_string(coverage.share) + ", width " + std::to_string(coverage.width));
    std::printf("%s: %.4f, width %.4f\n", name.c_str(), coverage.share, coverage.width);
    EXPECT_GE(coverage.share, kLeast) << name;
  }
  // It is narrower than that of a wider world: what the items differ by is no part of it.
  EXPECT_LT(Simulate({.items = 100, .run = 100, .k = 16}).width, 0.06);
}

}  // namespace
}  // namespace iha::scoring
