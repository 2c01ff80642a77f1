// Bounds by betting: wealth as the authors' own code computes it, inversion, and error rates under peeking.
//
// Expected wealths: betting_mart and lambda_predmix_eb of the Python package confseq 0.0.11 (Waudby-Smith, Howard) on
// the same 40 values, alpha 0.05 for its bets, theta 1 or 0, N None or 100.
#include "benchmarks/scoring/stats_betting.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/rng.h"

namespace iha::scoring {
namespace {

std::vector<double> Values() {
  std::vector<double> values;
  for (int i = 0; i < 40; ++i) values.push_back((7 * i * i + 3 * i) % 11 / 10.0);
  return values;
}

TEST(Betting, WealthIsThatOfTheAuthorsProgram) {
  struct Case {
    int64_t population;
    BetSide side;
    double m, last, largest;
  };
  const Case cases[] = {
      {0, BetSide::kAbove, 0.3, 5.469674679166683, 5.469674679166683},
      {0, BetSide::kAbove, 0.45, 0.01832646584946678, 1.0},
      {0, BetSide::kBelow, 0.45, 0.7172358883002874, 1.4090909090909092},
      {0, BetSide::kBelow, 0.6, 116.4791709546675, 116.4791709546675},
      {100, BetSide::kAbove, 0.3, 12.937865926252407, 12.937865926252407},
      {100, BetSide::kAbove, 0.6, 3.565317758302611e-05, 1.0},
      {100, BetSide::kBelow, 0.45, 1.057473390121743, 1.4090909090909092},
      {100, BetSide::kBelow, 0.6, 573.2736725534514, 573.2736725534514},
  };
  for (const Case& c : cases) {
    EProcess process(c.side, c.m, 0.05, c.population);
    for (const double value : Values()) process.Add(value);
    EXPECT_NEAR(process.e_value() / c.last, 1.0, 1e-9) << c.m << " " << c.population;
    EXPECT_NEAR(process.largest() / c.largest, 1.0, 1e-9) << c.m << " " << c.population;
  }
}

TEST(Betting, FixedNWealthIsThatOfTheAuthorsProgram) {
  EXPECT_NEAR(BettingPValue(Values(), BetSide::kAbove, 0.3, 0.05), 1 / 9.02556906474383, 1e-10);
  EXPECT_NEAR(BettingPValue(Values(), BetSide::kAbove, 0.45, 0.05), 1 / 1.0026117448901308, 1e-10);
  EXPECT_EQ(BettingPValue(Values(), BetSide::kAbove, 0.6, 0.05), 1.0);
  EXPECT_NEAR(BettingPValue(Values(), BetSide::kBelow, 0.45, 0.05), 1 / 1.3483204804184454, 1e-10);
  EXPECT_NEAR(BettingPValue(Values(), BetSide::kBelow, 0.6, 0.05), 1 / 190.62974375216086, 1e-10);
}

TEST(Betting, BoundsAreWhereTheTestBeginsToReject) {
  const double low = BettingBound(Values(), BetSide::kAbove, 0.05);
  const double high = BettingBound(Values(), BetSide::kBelow, 0.05);
  EXPECT_LT(low, high);
  EXPECT_LE(BettingPValue(Values(), BetSide::kAbove, low, 0.05), 0.05);
  EXPECT_GT(BettingPValue(Values(), BetSide::kAbove, low + 1e-6, 0.05), 0.05);
  EXPECT_LE(BettingPValue(Values(), BetSide::kBelow, high, 0.05), 0.05);
  EXPECT_GT(BettingPValue(Values(), BetSide::kBelow, high - 1e-6, 0.05), 0.05);
  EXPECT_EQ(BettingBound(std::vector<double>{1.0}, BetSide::kAbove, 0.05), 0.0);
  EXPECT_EQ(BettingBound(std::vector<double>{0.0}, BetSide::kBelow, 0.05), 1.0);
}

// With all of a population seen its mean is known, to within what the bets have won; and a null that the values seen
// already contradict is out for good.
TEST(Betting, WithoutReplacementThePopulationRunsOut) {
  std::vector<double> values(60, 0.0);
  std::fill(values.begin(), values.begin() + 30, 1.0);
  PhiloxStream(1).Shuffle(values);
  const double with = SequenceBound(values, BetSide::kAbove, 0.05);
  const double without = SequenceBound(values, BetSide::kAbove, 0.05, 60);
  EXPECT_GT(without, with + 0.05);
  EXPECT_LE(without, 0.5);
  EXPECT_GE(SequenceBound(values, BetSide::kBelow, 0.05, 60), 0.5);
  EProcess impossible(BetSide::kAbove, 0.25, 0.05, 8);
  for (int i = 0; i < 3; ++i) impossible.Add(1.0);
  impossible.Add(0.0);
  EXPECT_GT(impossible.largest(), 1e12);
  // At the true mean nothing is contradicted, although the last values leave no room and sums are rounded.
  EProcess possible(BetSide::kAbove, 0.3, 0.05, 10);
  for (int i = 0; i < 10; ++i) possible.Add(i < 6 ? 0.5 : 0.0);
  EXPECT_LT(possible.largest(), 1e6);
}

// Share of runs in which a true null is ever rejected when one looks after each of `items` values.
double EverRejected(int runs, int items, bool without_replacement) {
  PhiloxStream random(77);
  int rejected = 0;
  for (int run = 0; run < runs; ++run) {
    // d is -1, 0 or 1, mostly 0; its mean is exactly 0 in the population, or in expectation.
    std::vector<double> x;
    for (int i = 0; i < items; ++i) {
      const double u = random.NextUniform();
      if (without_replacement) {
        x.push_back(i % 10 == 0 ? (i % 20 == 0 ? 0.0 : 1.0) : 0.5);
      } else {
        x.push_back(u < 0.05 ? 0.0 : (u < 0.1 ? 1.0 : 0.5));
      }
    }
    if (without_replacement) random.Shuffle(x);
    EProcess below(BetSide::kBelow, 0.5, 0.05, without_replacement ? items : 0);
    for (const double value : x) below.Add(value);
    rejected += below.largest() >= 20.0 ? 1 : 0;
  }
  return static_cast<double>(rejected) / runs;
}

TEST(Betting, PeekingAfterEveryValueKeepsTheErrorRate) {
  constexpr int kRuns = 2000;
  constexpr double kSlack = 2 * 0.0049;  // two standard errors of 0.05 over 2000 runs
  for (const bool without : {false, true}) {
    const double rate = EverRejected(kRuns, 400, without);
    RecordProperty(without ? "without_replacement" : "with_replacement", std::to_string(rate));
    EXPECT_LE(rate, 0.05 + kSlack) << without;
  }
}

}  // namespace
}  // namespace iha::scoring
