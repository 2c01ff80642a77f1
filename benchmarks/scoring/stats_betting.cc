#include "benchmarks/scoring/stats_betting.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "benchmarks/scoring/stats_math.h"

namespace iha::scoring {
namespace {

constexpr double kLargestShare = 0.5;  // of the wealth that may be staked on one value
constexpr double kInfinite = std::numeric_limits<double>::infinity();

// The mean of the next value when that of all N is `m` and those seen sum to `sum` (with replacement: m itself).
double NextMean(double m, double population, double seen, double sum) {
  if (population == 0) return m;
  return (population * m - sum) / (population - seen);
}

// What the wealth is multiplied by. A null under which the next value's mean lies outside [0, 1] is impossible, but for
// the rounding of the sums that led there; one beyond the other end is no more than one at that end.
double Factor(BetSide side, double bet, double value, double mean) {
  constexpr double kRounding = 1e-9;
  const double room = side == BetSide::kAbove ? mean : 1.0 - mean;
  if (room < -kRounding) return kInfinite;
  const double clipped = std::min(1.0, std::max(0.0, mean));
  const double capped = room > 0 ? std::min(bet, kLargestShare / room) : bet;
  return side == BetSide::kAbove ? 1.0 + capped * (value - clipped) : 1.0 - capped * (value - clipped);
}

struct Plan {
  double alpha = 0.05;
  bool any_time = false;
  double population = 0;  // 0 = with replacement
};

// The bet before value `seen` + 1, from the values before it.
double PlugInBet(double log_scale, double spread, double seen, double horizon) {
  const double variance = spread / (seen + 1.0);
  return std::sqrt(log_scale / horizon / variance);
}

double TimeHorizon(double seen) { return (seen + 1.0) * NaturalLog(seen + 2.0); }

std::vector<double> PlugInBets(std::span<const double> values, const Plan& plan) {
  const double log_scale = 2.0 * NaturalLog(1.0 / plan.alpha);
  std::vector<double> bets;
  bets.reserve(values.size());
  double sum = 0.5, spread = 0.25;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto seen = static_cast<double>(i);
    const double horizon = plan.any_time ? TimeHorizon(seen) : static_cast<double>(values.size());
    bets.push_back(PlugInBet(log_scale, spread, seen, horizon));
    sum += values[i];
    const double mean = sum / (seen + 2.0);
    spread += (values[i] - mean) * (values[i] - mean);
  }
  return bets;
}

// The largest wealth of the bets against `m`; the walk ends where it reaches `enough`.
double LargestWealth(std::span<const double> values, std::span<const double> bets, BetSide side, double m,
                     double population, double enough) {
  double wealth = 1.0, largest = 1.0, sum = 0.0;
  for (size_t i = 0; i < values.size(); ++i) {
    wealth *= Factor(side, bets[i], values[i], NextMean(m, population, static_cast<double>(i), sum));
    sum += values[i];
    largest = std::max(largest, wealth);
    if (largest >= enough) break;
  }
  return largest;
}

// Wealth falls with m for bets above and rises for bets below, so a bound is one bisection.
double Bound(std::span<const double> values, BetSide side, const Plan& plan) {
  const std::vector<double> bets = PlugInBets(values, plan);
  const double enough = 1.0 / plan.alpha;
  const auto rejected = [&](double m) {
    return LargestWealth(values, bets, side, m, plan.population, enough) >= enough;
  };
  double out = side == BetSide::kAbove ? 0.0 : 1.0;  // rejected, from here on
  if (!rejected(out)) return out;
  constexpr int kBisections = 50;
  double in = 1.0 - out;
  for (int i = 0; i < kBisections; ++i) {
    const double middle = 0.5 * (out + in);
    (rejected(middle) ? out : in) = middle;
  }
  return out;
}

}  // namespace

double BettingBound(std::span<const double> values, BetSide side, double alpha) {
  return Bound(values, side, {.alpha = alpha});
}

double BettingPValue(std::span<const double> values, BetSide side, double m, double alpha) {
  const std::vector<double> bets = PlugInBets(values, {.alpha = alpha});
  return 1.0 / LargestWealth(values, bets, side, m, 0.0, kInfinite);
}

double SequenceBound(std::span<const double> values, BetSide side, double alpha, int64_t population) {
  return Bound(values, side, {.alpha = alpha, .any_time = true, .population = static_cast<double>(population)});
}

EProcess::EProcess(BetSide side, double m, double alpha, int64_t population)
    : side_(side), m_(m), log_scale_(2.0 * NaturalLog(1.0 / alpha)), population_(static_cast<double>(population)) {}

void EProcess::Add(double value) {
  const double bet = PlugInBet(log_scale_, spread_, seen_, TimeHorizon(seen_));
  wealth_ *= Factor(side_, bet, value, NextMean(m_, population_, seen_, sum_));
  largest_ = std::max(largest_, wealth_);
  sum_ += value;
  seen_ += 1.0;
  const double mean = (sum_ + 0.5) / (seen_ + 1.0);
  spread_ += (value - mean) * (value - mean);
}

}  // namespace iha::scoring
