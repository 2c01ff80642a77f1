// gate_outlook.h: what the gate's own test would do: with more items like those that were seen, and of a candidate that
// has not changed. Through the test that decides, not through a formula beside it: below 30 differences that test is
// the betting bound, which needs far more than a normal approximation says (statistics.md, "Gate"). Pure; equal data
// give equal bits on every machine.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "benchmarks/scoring/stats_paired.h"

namespace iha::reports {

struct OutlookOptions {
  scoring::PairedOptions test;
  double margin = 0.0;
  double power = 0.8;
  double holm = 1.0;  // by what Holm multiplied this metric's p
};

// How many items more than the n of `d` decide: the fewest for which the test of `d` itself, repeated evenly to that
// many items, passes or fails, and no fewer than pass or fail with `power` by the normal approximation if Delta is what
// was seen. None: more than 65,536 items in all.
std::optional<int64_t> MoreItemsToDecide(std::span<const double> d, const OutlookOptions& options);

// By the normal approximation: how many samples an item, instead of k, decide with the same items. `within`: the sum of
// both models' mean variances within an item. None: no number of samples would, or the test is not a normal one.
std::optional<int64_t> SamplesToDecide(const scoring::PairedResult& test, double within, int32_t k,
                                       const OutlookOptions& options);

// With what probability a candidate passes that differs from the baseline as much as this one, but in no direction
// (each d with a random sign): by the normal approximation, for the betting bound in 400 seeded resamples.
double UnchangedPasses(std::span<const double> d, const scoring::PairedResult& test, const OutlookOptions& options);

}  // namespace iha::reports
