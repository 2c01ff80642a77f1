// Paired comparison: values of independent programs, the two views of one test, and error rates by simulation.
//
// Expected values: Tango's bounds by SciPy 1.17 (the constrained likelihood maximised by minimize_scalar, the bound by
// brentq); McNemar by statsmodels 0.15 (mcnemar, exact) and, mid-p, scipy.stats.binom; sign flips by
// scipy.stats.permutation_test (permutation_type "samples"); Holm by statsmodels' multipletests.
#include "benchmarks/scoring/stats_paired.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "benchmarks/scoring/stats_resample.h"
#include "common/rng.h"

namespace iha::scoring {
namespace {

std::vector<double> Signs(int better, int worse, int items) {
  std::vector<double> d(static_cast<size_t>(items), 0.0);
  for (int i = 0; i < better; ++i) d[static_cast<size_t>(i)] = 1.0;
  for (int i = 0; i < worse; ++i) d[static_cast<size_t>(better + i)] = -1.0;
  return d;
}

TEST(Tango, BoundsAreThoseOfTheConstrainedLikelihood) {
  struct Case {
    int better, worse, items;
    double lower, upper, at_minus_3_points;
  };
  const Case cases[] = {
      {12, 2, 50, 0.08547438402263828, 0.3204133864607875, 2.9916734185678786},
      {5, 9, 164, -0.0658852806715499, 0.014292363125940013, 0.244620966318128},
      {40, 60, 500, -0.07322968360567499, -0.007185324962876837, -0.5026644784156346},
      {0, 7, 164, -0.07690495220044338, -0.02330493443072832, -0.9521270515192274},
      {100, 90, 1319, -0.009660818191989733, 0.024883743260969846, 3.5293836887620866},
      {3, 0, 50, 0.005586823697389241, 0.14094194646070335, 2.153874476947325},
  };
  for (const Case& c : cases) {
    const PairedResult result =
        CompareDifferences(Signs(c.better, c.worse, c.items), {.single_sample = true, .continuity = 0.0});
    EXPECT_EQ(result.method, PairedMethod::kTango);
    EXPECT_NEAR(result.lower, c.lower, 1e-6);
    EXPECT_NEAR(result.upper, c.upper, 1e-6);
    EXPECT_NEAR(TangoStatistic(c.better, c.worse, c.items, -0.03), c.at_minus_3_points, 1e-5);
    EXPECT_EQ(result.p_worse < 0.05, result.upper < 0);
    EXPECT_EQ(result.better, c.better);
    EXPECT_EQ(result.worse, c.worse);
  }
}

// The likelihood maximised and the bound found by bisection in Python, half a count off the difference.
TEST(Tango, TheGateTakesHalfACountOff) {
  struct Case {
    int better, worse, items;
    double lower, upper;
  };
  for (const Case& c : {Case{12, 2, 50, 0.07463580560469338, 0.3308779154928576},
                        Case{5, 9, 164, -0.06936889771558441, 0.017694520861056787},
                        Case{0, 7, 164, -0.08071970522145722, -0.02016827432185441},
                        Case{100, 90, 1319, -0.010043077146949967, 0.02526724002500952}}) {
    const PairedResult result = CompareDifferences(Signs(c.better, c.worse, c.items), {.single_sample = true});
    EXPECT_NEAR(result.lower, c.lower, 1e-6);
    EXPECT_NEAR(result.upper, c.upper, 1e-6);
    EXPECT_EQ(result.p_worse < 0.05, result.upper < 0);
  }
}

// 164 items that are lost with probability 0.0614 and never won: "not worse by 6.14 points" is claimed in error with
// the probability of a binomial tail, 5.9 % where the uncorrected test passes 5 losses, 2.5 % at the 4 of this one.
TEST(Tango, FewLossesKeepTheErrorRate) {
  const double margin = 0.0614;
  const auto passes = [&](int losses, double continuity) {
    return CompareDifferences(Signs(0, losses, 164), {.single_sample = true, .continuity = continuity}).lower > -margin;
  };
  EXPECT_TRUE(passes(5, 0.0));
  EXPECT_FALSE(passes(5, 0.5));
  EXPECT_TRUE(passes(4, 0.5));
}

TEST(Tango, NothingDiscordantHasTheClosedForm) {
  const PairedResult result = CompareDifferences(Signs(0, 0, 164), {.single_sample = true, .continuity = 0.0});
  const double z2 = 1.6448536269514722 * 1.6448536269514722;
  EXPECT_NEAR(result.lower, -z2 / (164 + z2), 1e-9);
  EXPECT_NEAR(result.upper, z2 / (164 + z2), 1e-9);
  EXPECT_NEAR(result.p_worse, 0.5, 1e-12);
}

TEST(McNemarTest, IsThatOfTheLibraries) {
  struct Case {
    int better, worse;
    double p, mid_p;
  };
  for (const Case& c : {Case{12, 2, 0.012939453125, 0.00738525390625}, Case{5, 9, 0.4239501953125, 0.3017578125},
                        Case{40, 60, 0.05688793364098089, 0.04604406692934291}, Case{0, 7, 0.015625, 0.0078125},
                        Case{3, 3, 1.0, 1.0}, Case{0, 0, 1.0, 1.0}, Case{1, 0, 1.0, 0.5}}) {
    EXPECT_NEAR(McNemarTest(c.better, c.worse).p, c.p, 1e-12);
    EXPECT_NEAR(McNemarTest(c.better, c.worse).mid_p, c.mid_p, 1e-12);
    EXPECT_EQ(McNemarTest(c.worse, c.better).p, McNemarTest(c.better, c.worse).p);
  }
}

TEST(SignFlip, ExactIsThatOfTheLibraryAndSeededComesNear) {
  const std::vector<double> d = {0.2, -0.4, 0.6, 0.2, -0.2, 0.8, 1.0, 0.4, -0.2, 0.6, 0, 0};
  EXPECT_EQ(SignFlipPValue(d), 0.09765625);
  EXPECT_EQ(SignFlipPValue(std::vector<double>(5, 0.0)), 1.0);
  // 30 values of one size are a binomial: P(|X - 15| >= 5), X ~ Bin(30, 1/2), is 0.0987371.
  std::vector<double> signs = Signs(20, 10, 30);
  EXPECT_NEAR(SignFlipPValue(signs), 0.0987371, 0.004);
  EXPECT_EQ(SignFlipPValue(signs), SignFlipPValue(signs));
}

TEST(Holm, AdjustsAsTheLibraryDoes) {
  const std::vector<double> adjusted = HolmAdjusted(std::vector<double>{0.01, 0.04, 0.03, 0.005, 0.5});
  const double expected[] = {0.04, 0.09, 0.09, 0.025, 0.5};  // multipletests(..., method="holm")
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(adjusted[i], expected[i], 1e-12) << i;
  // The algorithm's own steps: the largest e shares with the smaller ones, wherever that lowers it.
  const std::vector<double> e = EHolmAdjusted(std::vector<double>{40.0, 2.0, 0.0});
  EXPECT_NEAR(e[0], 14.0, 1e-12);  // min(40, (40 + 0) / 2, (40 + 0 + 2) / 3)
  EXPECT_NEAR(e[1], 1.0, 1e-12);   // min(2, (2 + 0) / 2)
  EXPECT_EQ(e[2], 0.0);
  EXPECT_EQ(EHolmAdjusted(std::vector<double>{25.0}), std::vector<double>{25.0});
}

TEST(Margins, FollowTheirFormulas) {
  // (1.644854 + 0.841621) * sqrt(0.1) / sqrt(1319), z-values of published tables.
  EXPECT_NEAR(MinimumDetectableEffect(std::sqrt(0.1), 1319, 0.05, 0.8), 2.486475 * std::sqrt(0.1 / 1319), 1e-8);
  const double margin = MinimumDetectableEffect(0.3, 164, 0.05, 0.8);
  EXPECT_NEAR(PassPower(0.3, 164, 0.05, margin), 0.8, 1e-9);
  EXPECT_EQ(PassPower(0.0, 164, 0.05, 0.01), 1.0);
}

// Item rates u^2, k samples; the candidate shares the baseline's uniforms with probability `shared` (as one that was
// seeded alike does) and each of its right samples is lost with probability `loss`.
std::vector<double> Differences(PhiloxStream& random, int items, int k, double shared, double loss) {
  std::vector<double> d;
  for (int i = 0; i < items; ++i) {
    const double u = random.NextUniform();
    const bool same = random.NextUniform() < shared;
    int sum = 0;
    for (int s = 0; s < k; ++s) {
      const double mine = random.NextUniform(), other = random.NextUniform(), kept = random.NextUniform();
      sum += (same ? mine : other) < u * u && kept >= loss ? 1 : 0;
      sum -= mine < u * u ? 1 : 0;
    }
    d.push_back(static_cast<double>(sum) / k);
  }
  return d;
}

struct Rates {
  double lower_misses = 0.0;  // the true Delta lies below `lower`
  double upper_misses = 0.0;
};
Rates Simulate(int runs, int items, int k, double shared, double loss, double truth, PairedOptions options) {
  PhiloxStream random(91);
  Rates rates;
  for (int run = 0; run < runs; ++run) {
    options.seed = random.NextBits();  // the noise of few draws must average out over the runs
    const PairedResult result = CompareDifferences(Differences(random, items, k, shared, loss), options);
    EXPECT_EQ(result.p_worse <= options.alpha, result.upper < 0);
    rates.lower_misses += result.lower > truth ? 1.0 / runs : 0.0;
    rates.upper_misses += result.upper < truth ? 1.0 / runs : 0.0;
  }
  return rates;
}

TEST(Paired, OneSidedBoundsKeepTheirErrorRate) {
  constexpr int kRuns = 1000;
  constexpr double kSlack = 2 * 0.0069;  // two standard errors of 0.05 over 1000 runs
  struct Case {
    const char* name;
    int items, k;
    double shared, loss;
  };
  for (const Case& c : {Case{"tango_same", 164, 1, 0.5, 0.0}, Case{"tango_worse", 164, 1, 0.5, 0.1},
                        Case{"bootstrap_same", 164, 5, 0.0, 0.0}, Case{"bootstrap_worse", 164, 5, 0.5, 0.1},
                        Case{"betting", 164, 5, 0.95, 0.0}}) {
    const Rates rates =
        Simulate(kRuns, c.items, c.k, c.shared, c.loss, -c.loss / 3, {.single_sample = c.k == 1, .draws = 399});
    RecordProperty(std::string(c.name) + "_lower", std::to_string(rates.lower_misses));
    RecordProperty(std::string(c.name) + "_upper", std::to_string(rates.upper_misses));
    EXPECT_LE(rates.lower_misses, 0.05 + kSlack) << c.name;
    EXPECT_LE(rates.upper_misses, 0.05 + kSlack) << c.name;
  }
}

// A sum of means of four grades moves by quarters: half of one, over n, on each side, and nothing where values lie
// close.
TEST(Paired, TheBootstrapsBoundsTakeHalfAStepOff) {
  std::vector<double> quarters(200, 0.0);
  for (size_t i = 0; i < 60; ++i) quarters[i] = i % 3 == 0 ? -0.25 : 0.5;
  const PairedResult plain = CompareDifferences(quarters, {.draws = 199, .continuity = 0.0});
  const PairedResult half = CompareDifferences(quarters, {.draws = 199});
  EXPECT_EQ(half.method, PairedMethod::kBootstrapT);
  EXPECT_NEAR(plain.lower - half.lower, 0.5 * 0.25 / 200, 1e-12);
  EXPECT_NEAR(half.upper - plain.upper, 0.5 * 0.25 / 200, 1e-12);
  EXPECT_GE(half.p_worse, plain.p_worse);
  quarters[0] = -0.25 + 1e-7;
  EXPECT_NEAR(plain.lower, CompareDifferences(quarters, {.draws = 199}).lower, 1e-6);
}

// 36 of 400 items differ, 4 of them sixteen times as much as the others: these bear nearly all of the spread, and the
// standard error is that of some 4 items.
TEST(Paired, FewEffectiveItemsWidenTheBounds) {
  std::vector<double> d(400, 0.0);
  for (size_t i = 0; i < 32; ++i) d[i] = i % 2 == 0 ? 1.0 / 16 : -1.0 / 16;
  d[32] = d[33] = 1.0;
  d[34] = d[35] = -1.0;
  const double squares = 4 + 32.0 / 256, fourths = 4 + 32.0 / 65536;
  const double effective = squares * squares / fourths;
  EXPECT_NEAR(effective, 4.25, 0.01);
  const double se = std::sqrt(squares / 399 / 400) * std::sqrt(effective / (effective - 1));
  const std::vector<double> drawn = StudentizedResamples(d, 1234, 199);
  const PairedResult result = CompareDifferences(d, {.draws = 199, .continuity = 0.0});
  EXPECT_EQ(result.method, PairedMethod::kBootstrapT);
  EXPECT_NEAR(result.lower, -drawn[189] * se, 1e-12);
  EXPECT_NEAR(result.upper, -drawn[9] * se, 1e-12);
}

TEST(Paired, ChoosesItsMethod) {
  EXPECT_EQ(CompareDifferences(Signs(10, 10, 50), {}).method, PairedMethod::kBetting);
  EXPECT_EQ(CompareDifferences(Signs(20, 10, 50), {.draws = 99}).method, PairedMethod::kBootstrapT);
  std::vector<double> halves = Signs(20, 10, 50);
  halves[49] = 0.5;
  EXPECT_EQ(CompareDifferences(halves, {.single_sample = true, .draws = 99}).method, PairedMethod::kBootstrapT);
  EXPECT_EQ(CompareDifferences(std::vector<double>(40, 0.25), {}).method, PairedMethod::kBetting);
  const std::vector<Score> third = {{1, 3}, {2, 3}}, same = {{1, 3}, {1, 3}};
  const PairedResult result = ComparePaired(third, same, {});
  EXPECT_EQ(result.items, 2);
  EXPECT_EQ(result.better, 1);
  EXPECT_NEAR(result.delta, 1.0 / 6, 1e-15);
}

// A resample drawn by counts has the distribution of one drawn item by item: compared by its first two moments and by
// how often the common value is all there is.
// As often below -1 as when items are drawn one by one, whether the most common value lies near the mean or far from
// it; where all drawn items have one value there is no spread.
TEST(Resample, CountsAreMultinomial) {
  const struct {
    std::vector<double> values;
    double mean;
    double no_spread;  // probability
  } cases[] = {{{0, 0, 0, 0, 0, 0, 1, 1, -1, 0.5}, 0.15, std::pow(0.6, 10)},
               {{1, 1, 1, 1, 1, 0, 0, 0, -1, -1}, 0.3, std::pow(0.5, 10)}};
  constexpr int kDraws = 20000;
  for (const auto& c : cases) {
    const std::vector<double> drawn = StudentizedResamples(c.values, 1, kDraws);
    ASSERT_EQ(drawn.size(), static_cast<size_t>(kDraws));
    EXPECT_TRUE(std::is_sorted(drawn.begin(), drawn.end()));
    PhiloxStream random(6);
    double below = 0.0, below_direct = 0.0, no_spread = 0.0;
    for (const double t : drawn) {
      below += t < -1.0 ? 1.0 / kDraws : 0.0;
      no_spread += std::isinf(t) ? 1.0 / kDraws : 0.0;
    }
    for (int run = 0; run < kDraws; ++run) {
      double sum = 0.0, squares = 0.0;
      for (int i = 0; i < 10; ++i) {
        const double value = c.values[random.NextBelow(10)] - c.mean;
        sum += value;
        squares += value * value;
      }
      below_direct += StudentizedMean(sum, squares, 10.0, 1e-12) < -1.0 ? 1.0 / kDraws : 0.0;
    }
    // Four standard errors, of a difference of two shares and of one.
    EXPECT_NEAR(below, below_direct, 4 * std::sqrt(2 * 0.25 / kDraws));
    EXPECT_NEAR(no_spread, c.no_spread, 4 * std::sqrt(0.006 / kDraws));
  }
}

}  // namespace
}  // namespace iha::scoring
