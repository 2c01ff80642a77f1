// stats_fixed_list.h: the interval of one table cell for the target "benchmark": what the model would score on average
// over the benchmark's own N items if each were sampled without end. Which items the list holds is no part of the
// uncertainty; what is: samples that are drawn at random, and items of the list that were not run.
//
//   SE^2 = (1 - n/N) s_m^2 / n + (n/N) / n^2 * sum of s_within,i^2 / k
//
// with n items run, s_m^2 the variance of their values, and s_within,i^2 = m_i (1 - m_i) k / (k - 1) that of the k
// grades of item i: exact for grades of 0 or 1, and never less than theirs for grades between.
//   kExact            every item run, nothing drawn: the value itself, without width
//   kWilsonEffective  Wilson's score interval with the effective number of items p (1 - p) / SE^2 (Kott and Carr,
//                     Journal of Official Statistics 13, 1997). Every item run and fewer than 30 of them with unequal
//                     grades: the number of all samples instead, since successes of independent trials of unequal
//                     chances scatter no more than those of equal ones (Hoeffding, Annals of Mathematical Statistics
//                     27, 1956)
//   kBetting          items are missing, and fewer than 10 of the others differ from the most common value: as for a
//                     wider world (stats.h), which is no narrower
// Items that were not run are taken to be like the others. Pure, thread-safe, the same bits everywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "benchmarks/scoring/stats.h"

namespace iha::scoring {

struct FixedList {
  int64_t items = 0;    // N, no fewer than there are values
  int32_t samples = 1;  // k, of each item
  bool drawn = false;   // at random: two samples of one item may differ
};

// Absent where one sample of each item was drawn at random: that does not show how much it would vary.
// `item_values`: means of an item's grades, as CellInterval takes them.
std::optional<Interval> FixedListInterval(std::span<const Score> item_values, const FixedList& list,
                                          const IntervalOptions& options);

}  // namespace iha::scoring
