// ranks.h: average ranks as the paper's tables print them.
//
// Per metric, rank 1 = best among the models that have the metric (higher is better); ties share the mean of their
// ranks; a model's average rank is the mean over the metrics it has. Exact rationals. Source: IHA paper, Tables 1, 2.
#pragma once

#include <optional>
#include <vector>

#include "benchmarks/scoring/rational.h"

namespace iha::reports {

// values[model][metric]; absent = the model lacks the metric. Rows must have equal lengths.
using ScoreMatrix = std::vector<std::vector<std::optional<scoring::Rational>>>;

// ranks[model][metric], absent where the value is.
ScoreMatrix RanksByMetric(const ScoreMatrix& values);

// One value for each model; absent for a model without any metric.
std::vector<std::optional<scoring::Rational>> AverageRanks(const ScoreMatrix& values);

}  // namespace iha::reports
