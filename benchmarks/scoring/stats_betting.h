// stats_betting.h: bounds of a mean by betting (Waudby-Smith and Ramdas, "Estimating means of bounded random variables
// by betting", JRSS B 2024): valid for any values in the stated range, at any n, without an approximation.
//
//   fixed n      BettingBound, BettingPValue: bets sqrt(2 log(1/alpha) / (n variance so far)), for n values in an order
//                that does not depend on them (callers shuffle by a seed)
//   any time     EProcess, SequenceBound: bets sqrt(2 log(1/alpha) / (t log(t+1) variance so far)), for stopping
//                whenever one likes; Ville's inequality holds the error below alpha at every stopping time
// Bets are the predictable plug-in ones: that on value i depends on the values before it only. With a population of N
// the values are drawn without replacement and the mean that is bounded is that of all N (section 5): the null's mean
// of the next value then moves with what was already seen. Pure, thread-safe; +, -, *, / and sqrt only, so equal data
// give equal bits everywhere. Values and bounds lie in [0, 1]; a difference d in [-1, 1] is handed in as (d + 1) / 2.
#pragma once

#include <cstdint>
#include <span>

namespace iha::scoring {

// What the wealth grows with: values above the hypothetical mean (against "mean <= m"), or below it ("mean >= m").
enum class BetSide { kAbove, kBelow };

// The largest m that bets on kAbove reject at level alpha, i.e. a lower bound of the mean (kBelow: the smallest m, an
// upper bound). Nothing rejected: 0 (1). At least one value.
double BettingBound(std::span<const double> values, BetSide side, double alpha);
// min(1, 1 / the largest wealth) against "mean <= m" (kBelow: "mean >= m"), of the same bets.
double BettingPValue(std::span<const double> values, BetSide side, double m, double alpha);

// A one-sided test that may be looked at after every value. Belongs to one thread.
class EProcess {
 public:
  // `population`: 0 = the values are independent draws; N = they are drawn without replacement from N.
  EProcess(BetSide side, double m, double alpha, int64_t population = 0);
  void Add(double value);
  // The evidence against the null now. Its expectation under the null is at most 1 at every stopping time.
  double e_value() const { return wealth_; }
  double largest() const { return largest_; }  // rejected for good once this is at least 1 / alpha

 private:
  BetSide side_;
  double m_;
  double log_scale_;  // 2 log(1 / alpha)
  double population_;
  double seen_ = 0.0;
  double sum_ = 0.0;      // of the values seen
  double spread_ = 0.25;  // sum of squared deviations, with one made-up value of variance 1/4
  double wealth_ = 1.0;
  double largest_ = 1.0;
};

// The bound of a one-sided confidence sequence behind `values` (as BettingBound; the intersection over all times so
// far).
double SequenceBound(std::span<const double> values, BetSide side, double alpha, int64_t population = 0);

}  // namespace iha::scoring
