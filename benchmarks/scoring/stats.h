// stats.h: the interval of one table cell, from its item values (target "population": the items are a sample of a wider
// world of items; samples of one item are dependent, so the item is the unit; the other target: stats_fixed_list.h).
//
//   kWilson      every value is 0 or 1 and each item had one sample: Wilson's score interval of the proportion
//   kBootstrapT  otherwise: studentized bootstrap over items, seeded Philox draws
//   kBetting     otherwise, when fewer than 10 items differ from the most common value: the hedged betting interval
//                (Waudby-Smith and Ramdas 2024, predictable plug-in bets for fixed n), valid for any values in [0, 1]
//   kNone        no items: [0, 1]
// An interval is inside [0, 1] and never has zero width. The same values, in the same order, with the same options give
// the same bits on every machine: only +, -, *, / and sqrt of IEEE doubles are used, and no library logarithms.
// Pure, thread-safe. Cost: kBootstrapT about 5 ns x items x draws.
#pragma once

#include <cstdint>
#include <span>

#include "common/eval_types.h"

namespace iha::scoring {

// The last two are of stats_fixed_list.h.
enum class IntervalMethod { kNone = 0, kWilson, kBootstrapT, kBetting, kWilsonEffective, kExact };
const char* NameOf(IntervalMethod method);  // "none", "wilson", "bootstrap_t", "betting", "wilson_effective", "exact"

struct IntervalOptions {
  double confidence = 0.95;    // two-sided, in (0, 1)
  bool single_sample = false;  // each value is the grade of exactly one sample (k = 1): allows kWilson
  uint64_t seed = 1234;        // of the bootstrap draws
  int32_t draws = 10000;       // bootstrap resamples
  int64_t min_uncommon = 10;   // fewer items than this off the most common value: kBetting
};

struct Interval {
  double low = 0.0;
  double high = 1.0;
  IntervalMethod method = IntervalMethod::kNone;
  bool operator==(const Interval&) const = default;
};

// `item_values`: one value in [0, 1] for each scored item, in item order (unscored items are left out by the caller,
// who reports scored/planned beside the interval).
Interval CellInterval(std::span<const Score> item_values, const IntervalOptions& options);

// The three methods by themselves. `values` in [0, 1], at least one; `share` in [0, 1] of `items`, above 0.
Interval WilsonInterval(double share, double items, double confidence);
Interval BootstrapTInterval(std::span<const double> values, const IntervalOptions& options);
Interval BettingInterval(std::span<const double> values, const IntervalOptions& options);

// Items that differ from the most common value.
int64_t UncommonItems(std::span<const Score> item_values);

}  // namespace iha::scoring
