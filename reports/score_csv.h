// score_csv.h: a CSV of scores: first column the model, then one column a metric, empty = missing. Pure; thread: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/ranks.h"

namespace iha::reports {

struct ScoreCsv {
  std::string corner;  // header of the first column
  std::vector<std::string> metrics;
  std::vector<std::string> models;
  std::vector<std::vector<std::string>> text;  // [model][metric], as given
  ScoreMatrix values;
  std::vector<int> decimals;  // most digits after the point, per metric
};

// InvalidArgument names line and column of what is not a number, ragged rows, doubled models.
absl::StatusOr<ScoreCsv> ParseScoreCsv(std::string_view csv);

}  // namespace iha::reports
