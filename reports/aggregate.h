// aggregate.h: from item rows to the cells of a table: exact means, intervals, counts by reason.
//
// Pure functions; thread: any. A cell's value is the mean over its finished items, an exact rational. Items that
// finished without a score because of the model or the grader (prompt too long, quarantined, grader error) count as
// wrong, never leave the denominator, and are shown by reason; items that are pending, cancelled, without a grader
// or that no generator or data can give make the cell incomplete. scored + unscored by reason = planned in every cell
// (INV-TAB-1). Intervals: see benchmarks/scoring/stats.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/scoring/rational.h"
#include "benchmarks/scoring/stats.h"
#include "common/digest.h"
#include "common/eval_types.h"
#include "reports/snapshot.h"

namespace iha::reports {

// What a finished item adds to a mean: its score, 0 where model or grader are the reason that it has none, or nothing.
enum class Contribution { kScore, kWrong, kNothing };
Contribution ContributionOf(Unscored reason);
// That of one metric's value to its mean; nullopt: nothing. `item`: why the item as a whole has no score, if it has
// none.
std::optional<Score> Contributed(Unscored item, const ItemValue& value);

struct Cell {
  std::string metric;
  int64_t planned = 0;
  int64_t scored = 0;
  std::map<Unscored, int64_t> unscored;  // by reason, pending included
  // In [0, 1]; absent: nothing finished, undefined for this sweep, or a part of a sequential one, or of settled votes.
  std::optional<scoring::Rational> value;
  std::optional<scoring::Interval> interval;  // absent without a value, and where the target's can't be told
  scoring::Rational tie_rate;                 // votes: mean probability that leaders tie; 0 without a value
  int64_t samples = 0;                        // samples of the finished items
  int64_t invalid = 0;                        // samples without an extractable answer (votes only)
  int64_t truncated = 0;                      // samples that ended by max_new_tokens
  int64_t empty = 0;
  bool over_context = false;  // items are longer than the context that the model was made for
  // RULER: items whose prompt and new tokens together exceed their length, and by how many tokens at most.
  int64_t over_length = 0;
  int64_t most_over_length = 0;

  // The mean is over every planned item; only such cells are ranked and compared.
  bool complete() const;
};

// A 95 % interval in fractions.
struct Bounds {
  double low = 0;
  double high = 0;
};
struct WeightedCell {
  const Cell* cell = nullptr;
  double weight = 1.0;
};
// Bounds of the weighted mean of cells (weights add up to 1) over different items: each side's squared widths add up,
// as variances do (MOVER: Zou and Donner 2008, "Construction of confidence limits about effect measures"). nullopt
// where a cell is incomplete or has no interval, or there is none.
std::optional<Bounds> BoundsOfMean(const std::vector<WeightedCell>& cells);

// One cell for each of job.spec.entry.metrics, in order. `list_items`: intervals are about the benchmark's own list of
// so many items (scoring/stats_fixed_list.h) instead of a wider world of them.
std::vector<Cell> CellsOf(const JobRows& job, std::optional<int64_t> list_items = std::nullopt);

// Why a metric of this entry has no interval about the benchmark's own items; "" where it has one.
std::string NoListInterval(const SweepEntry& entry, const std::string& metric);

}  // namespace iha::reports
