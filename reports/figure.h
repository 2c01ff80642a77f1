// figure.h: a sweep as a figure value: panels of bars or lines with error bars, ready to be drawn (render_svg.h).
//
// Pure: equal snapshots give equal figures. Thread: any. Error bars are 95 % intervals: a cell's own (aggregate.h), and
// of a mean over cells their BoundsOfMean. Errors: InvalidArgument when the sweep has nothing of the kind that is asked
// for; says what is missing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/snapshot.h"

namespace iha::reports {

struct FigureValue {
  double percent = 0;
  double low = 0;     // percent
  double high = 0;    // percent
  std::string label;  // the value as text, one decimal, half away from zero
};

struct Panel {
  enum class Kind { kBars, kLines };
  Kind kind = Kind::kBars;
  std::string title;
  std::string x_title;
  std::vector<std::string> x_names;
  std::vector<double> x;  // positions, ascending; empty: evenly spaced
  // values[series][x]; absent = the model lacks it, or not all of its cells are complete.
  std::vector<std::vector<std::optional<FigureValue>>> values;
};

struct Figure {
  std::vector<std::string> series;  // names, for the legend; the same in every panel
  std::vector<Panel> panels;        // from left to right
  std::vector<std::string> notes;   // lines below
};

// RULER as the IHA paper's Figure 2: (a) multi-key retrieval, the mean of the multi-key tasks, by length; (b) the mean
// of all tasks and lengths. Means are over the tasks that the sweep has, which the titles and notes name.
absl::StatusOr<Figure> RulerFigure(const Snapshot& snapshot);

// The mean of RULER's tasks against the length.
absl::StatusOr<Figure> LengthFigure(const Snapshot& snapshot);

// Each column of the generic table against the tokens that a checkpoint was trained on; at most kMostTokenPanels of
// them, and all if `metric` (a column's header) is empty. `train_tokens`: by model name; those without are left out and
// named. Models of one folder ("iha/step-1000", "iha/step-2000") are one line.
inline constexpr size_t kMostTokenPanels = 6;
absl::StatusOr<Figure> TrainTokensFigure(const Snapshot& snapshot, const std::map<std::string, int64_t>& train_tokens,
                                         const std::string& metric);

}  // namespace iha::reports
