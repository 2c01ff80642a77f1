// rank_csv.h: `iha-eval rank`: deltas to a baseline and average ranks for any table of scores.
//
// Input: a CSV, first column the model, then one column a metric, higher is better, empty = missing. Output: the same
// CSV with a column "METRIC delta" after each metric (signed, that column's most decimals; empty for the baseline and
// where either value is missing) and a last column "Avg. Rank" (one decimal, half away from zero). Exact decimals.
// InvalidArgument names line and column of what is not a number, ragged rows, doubled models, an unknown baseline.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace iha::reports {

absl::StatusOr<std::string> RankCsv(std::string_view csv, const std::string& baseline);

}  // namespace iha::reports
