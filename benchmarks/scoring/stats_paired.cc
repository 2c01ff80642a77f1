#include "benchmarks/scoring/stats_paired.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <numeric>

#include "benchmarks/scoring/rational.h"
#include "benchmarks/scoring/stats_betting.h"
#include "benchmarks/scoring/stats_math.h"
#include "benchmarks/scoring/stats_resample.h"
#include "common/philox.h"
#include "common/rng.h"

namespace iha::scoring {
namespace {

PairedResult Summary(std::span<const double> d) {
  PairedResult result;
  result.items = static_cast<int64_t>(d.size());
  const auto n = static_cast<double>(d.size());
  for (const double value : d) {
    result.delta += value;
    result.better += value > 0 ? 1 : 0;
    result.worse += value < 0 ? 1 : 0;
  }
  result.delta /= n;
  double squares = 0.0;
  for (const double value : d) squares += (value - result.delta) * (value - result.delta);
  if (d.size() > 1) result.sd = std::sqrt(squares / (n - 1.0));
  return result;
}

// Where the statistic, which falls with delta, passes `level`.
double TangoBound(const PairedResult& counts, double level, double correction) {
  double low = -1.0, high = 1.0;
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (TangoStatistic(counts.better, counts.worse, counts.items, middle, correction) > level ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

void UseTango(const PairedOptions& options, PairedResult& result) {
  const double z = NormalQuantile(1.0 - options.alpha);
  result.method = PairedMethod::kTango;
  // better - worse moves in whole steps: half of one, towards the hypothesis.
  result.lower = TangoBound(result, z, -options.continuity);
  result.upper = TangoBound(result, -z, options.continuity);
  const double at_zero = TangoStatistic(result.better, result.worse, result.items, 0.0, options.continuity);
  result.p_worse = NormalCdf(std::max(-8.0, std::min(8.0, at_zero)));
}

// The smallest distance between two values of d, which a sum of them moves by: 1 / k for means of k grades.
double StepOf(std::span<const double> d) {
  std::vector<double> values(d.begin(), d.end());
  std::sort(values.begin(), values.end());
  double step = 2.0;
  for (size_t i = 1; i < values.size(); ++i) {
    const double gap = values[i] - values[i - 1];
    if (gap > 1e-9) step = std::min(step, gap);  // less is rounding
  }
  return step;
}

// How many items of equal spread would tell as much of it: most d may be 0, and few of the others large.
double EffectiveItems(std::span<const double> d, double mean) {
  double squares = 0.0, fourths = 0.0;
  for (const double value : d) {
    const double square = (value - mean) * (value - mean);
    squares += square;
    fourths += square * square;
  }
  return squares * squares / fourths;
}

void UseBootstrapT(std::span<const double> d, const PairedOptions& options, PairedResult& result) {
  const double n = static_cast<double>(result.items);
  const double effective = EffectiveItems(d, result.delta);  // above 1, as residuals sum to 0
  const double se = std::sqrt(effective / (effective - 1.0)) * result.sd / std::sqrt(n);
  const double correction = options.continuity * StepOf(d) / n;
  const std::vector<double> statistics = StudentizedResamples(d, options.seed, options.draws);
  const auto rank = static_cast<size_t>(std::max(1.0, std::floor((options.draws + 1.0) * options.alpha)));
  result.method = PairedMethod::kBootstrapT;
  result.lower = std::max(-1.0, result.delta - statistics[statistics.size() - rank] * se - correction);
  result.upper = std::min(1.0, result.delta - statistics[rank - 1] * se + correction);
  const double observed = (result.delta + correction) / se;
  const auto as_low = std::upper_bound(statistics.begin(), statistics.end(), observed) - statistics.begin();
  result.p_worse = (1.0 + static_cast<double>(as_low)) / (options.draws + 1.0);
}

void UseBetting(std::span<const double> d, const PairedOptions& options, PairedResult& result) {
  std::vector<double> values;
  values.reserve(d.size());
  for (const double value : d) values.push_back(0.5 * (value + 1.0));
  PhiloxStream(options.seed).Shuffle(values);
  result.method = PairedMethod::kBetting;
  result.lower = 2.0 * BettingBound(values, BetSide::kAbove, options.alpha) - 1.0;
  result.upper = 2.0 * BettingBound(values, BetSide::kBelow, options.alpha) - 1.0;
  result.p_worse = BettingPValue(values, BetSide::kBelow, 0.5, options.alpha);
}

bool IsSign(double d) { return d == -1.0 || d == 0.0 || d == 1.0; }

// Sum of 2^-n C(n, i) for i < count, exactly.
Rational BinomialTail(int64_t n, int64_t count) {
  Rational sum;
  for (int64_t i = 0; i < count; ++i) sum += Rational::Binomial(n, i);
  for (int64_t left = n; left > 0; left -= 62) sum /= Rational(int64_t{1} << std::min<int64_t>(62, left));
  return sum;
}

// Shares of sign patterns whose |sum| is at least the observed one, but for the rounding of sums.
double ExactSignFlips(const std::vector<double>& d, double observed) {
  const auto patterns = uint64_t{1} << d.size();
  double sum = std::accumulate(d.begin(), d.end(), 0.0);
  uint64_t extreme = 0, flipped = 0;
  for (uint64_t i = 1; i <= patterns; ++i) {
    extreme += std::fabs(sum) >= observed ? 1 : 0;
    // Gray code: pattern i differs from the one before in the lowest set bit of i.
    const auto bit = static_cast<size_t>(std::countr_zero(i));
    if (bit >= d.size()) break;
    flipped ^= uint64_t{1} << bit;
    sum += (flipped >> bit & 1) != 0 ? -2.0 * d[bit] : 2.0 * d[bit];
  }
  return static_cast<double>(extreme) / static_cast<double>(patterns);
}

double SeededSignFlips(const std::vector<double>& d, double observed, uint64_t seed) {
  constexpr uint64_t kFlips = 100000;
  uint64_t extreme = 0;
  for (uint64_t flip = 0; flip < kFlips; ++flip) {
    double sum = 0.0;
    for (size_t begin = 0; begin < d.size(); begin += 128) {
      const PhiloxBlock random = Philox4x32(seed, begin / 128, flip);
      const size_t end = std::min(d.size(), begin + 128);
      for (size_t i = begin; i < end; ++i) {
        sum += (random.word[(i - begin) / 32] >> (i % 32) & 1) != 0 ? d[i] : -d[i];
      }
    }
    extreme += std::fabs(sum) >= observed ? 1 : 0;
  }
  return static_cast<double>(extreme + 1) / static_cast<double>(kFlips + 1);
}

}  // namespace

const char* NameOf(PairedMethod method) {
  switch (method) {
    case PairedMethod::kTango:
      return "tango";
    case PairedMethod::kBootstrapT:
      return "bootstrap_t";
    case PairedMethod::kBetting:
      return "betting";
  }
  return "betting";
}

double TangoStatistic(int64_t better, int64_t worse, int64_t items, double delta, double correction) {
  const auto n = static_cast<double>(items);
  const auto b = static_cast<double>(better), c = static_cast<double>(worse);
  // The larger root q of A q^2 + B q + C = 0 is the likeliest P(worse) when P(better) - P(worse) = delta.
  const double qa = 2.0 * n;
  const double qb = -b - c + (2.0 * n - b + c) * delta;
  const double qc = -c * delta * (1.0 - delta);
  const double q = (std::sqrt(std::max(0.0, qb * qb - 4.0 * qa * qc)) - qb) / (2.0 * qa);
  const double variance = n * (2.0 * q + delta * (1.0 - delta));
  const double distance = b - c - n * delta + correction;
  // No spread is left: only where nothing is discordant and delta is 0 (or at +-1), where nothing speaks against it.
  if (!(variance > 0.0)) return distance > 0 ? 1e9 : (distance < 0 ? -1e9 : 0.0);
  return distance / std::sqrt(variance);
}

PairedResult CompareDifferences(std::span<const double> d, const PairedOptions& options) {
  PairedResult result = Summary(d);
  if (options.single_sample && std::all_of(d.begin(), d.end(), IsSign)) {
    UseTango(options, result);
  } else if (result.better + result.worse >= options.min_nonzero && result.sd > 0) {
    UseBootstrapT(d, options, result);
  } else {
    UseBetting(d, options, result);
  }
  return result;
}

std::vector<double> Differences(std::span<const Score> candidate, std::span<const Score> baseline) {
  std::vector<double> d;
  d.reserve(candidate.size());
  for (size_t i = 0; i < candidate.size(); ++i) {
    const Score& a = candidate[i];
    const Score& b = baseline[i];
    d.push_back(a == b ? 0.0
                       : static_cast<double>(a.num) / static_cast<double>(a.den) -
                             static_cast<double>(b.num) / static_cast<double>(b.den));
  }
  return d;
}

PairedResult ComparePaired(std::span<const Score> candidate, std::span<const Score> baseline,
                           const PairedOptions& options) {
  return CompareDifferences(Differences(candidate, baseline), options);
}

McNemar McNemarTest(int64_t better, int64_t worse) {
  const int64_t n = better + worse;
  if (n == 0) return {};
  const int64_t fewer = std::min(better, worse);
  const double below = BinomialTail(n, fewer).ToDouble();
  const double up_to = BinomialTail(n, fewer + 1).ToDouble();
  return {std::min(1.0, 2.0 * up_to), std::min(1.0, below + up_to)};
}

double SignFlipPValue(std::span<const double> d, uint64_t seed) {
  std::vector<double> nonzero;
  std::copy_if(d.begin(), d.end(), std::back_inserter(nonzero), [](double value) { return value != 0.0; });
  if (nonzero.empty()) return 1.0;
  const double observed = std::fabs(std::accumulate(nonzero.begin(), nonzero.end(), 0.0)) - 1e-9;
  constexpr size_t kExactUpTo = 20;
  return nonzero.size() <= kExactUpTo ? ExactSignFlips(nonzero, observed) : SeededSignFlips(nonzero, observed, seed);
}

std::vector<double> HolmAdjusted(std::span<const double> p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double largest = 0.0;
  for (size_t i = 0; i < order.size(); ++i) {
    largest = std::max(largest, std::min(1.0, static_cast<double>(order.size() - i) * p[order[i]]));
    adjusted[order[i]] = largest;
  }
  return adjusted;
}

std::vector<double> EHolmAdjusted(std::span<const double> e) {
  std::vector<size_t> order(e.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return e[a] < e[b]; });
  std::vector<double> adjusted(e.size());
  for (size_t k = 0; k < order.size(); ++k) {
    double least = e[order[k]], smaller = 0.0;
    for (size_t i = 0; i < k; ++i) {
      smaller += e[order[i]];
      least = std::min(least, (e[order[k]] + smaller) / static_cast<double>(i + 2));
    }
    adjusted[order[k]] = least;
  }
  return adjusted;
}

double MinimumDetectableEffect(double sd, int64_t items, double alpha, double power) {
  return (NormalQuantile(1.0 - alpha) + NormalQuantile(power)) * sd / std::sqrt(static_cast<double>(items));
}

double PassPower(double sd, int64_t items, double alpha, double margin) {
  if (!(sd > 0.0)) return 1.0;
  const double shift = margin * std::sqrt(static_cast<double>(items)) / sd - NormalQuantile(1.0 - alpha);
  return NormalCdf(std::max(-8.0, std::min(8.0, shift)));
}

}  // namespace iha::scoring
