// ruler_summary.h: what RULER makes of a table's cells: for each model the mean of each length, their averages, the
// effective length (benchmarks/scoring/ruler_means.h). Pure; thread: any.
//
// One summary for each setting: cells of other options, sampling or limit are not averaged together. A length's mean is
// over the tasks that the sweep has there, equally weighted; it is there once each of them has a value, and complete
// when each of their cells is.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/scoring/ruler_means.h"
#include "common/eval_types.h"
#include "reports/aggregate.h"

namespace iha::reports {

struct RulerLength {
  std::optional<scoring::Rational> mean;  // in [0, 1]
  std::optional<Bounds> bounds;           // of a complete mean
  bool complete = false;
};

struct RulerRowSummary {
  std::vector<RulerLength> lengths;          // one for each of RulerSummary::lengths
  std::optional<scoring::RulerMeans> means;  // once every length has a mean
  // Of means that are complete: average, weighted_increasing, weighted_decreasing.
  std::array<std::optional<Bounds>, 3> bounds;
  bool complete = false;
};

struct RulerSummary {
  std::string setting;                // what the cells share: "mode=official template=auto ..."
  std::vector<int64_t> lengths;       // tokens, ascending
  std::vector<int> tasks;             // how many the sweep has, of each length
  std::vector<RulerRowSummary> rows;  // one a model
};

inline constexpr char kRulerMetric[] = "ruler.string_match";  // its entries' names say all that a column's header needs

// `cells[m][e]`: the first metric's cell of model m in entry e.
std::vector<RulerSummary> RulerSummaries(const std::vector<SweepEntry>& entries,
                                         const std::vector<std::vector<Cell>>& cells);

}  // namespace iha::reports
