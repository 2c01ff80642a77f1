// stats_ranks.h: how sure average ranks are: a joint bootstrap over items (Efron and Tibshirani 1993, chapter 6, the
// resampling unit being the item as in Goldstein and Spiegelhalter, "League tables and their limitations", JRSS A
// 1996).
//
// In each draw every benchmark's items are resampled once, for all models and all of its metrics alike, so that what
// the models share cancels out; ranks are those of the paper's rule (1 = best, ties share the mean of their ranks, a
// model's average is over the metrics that it has). Pure, thread-safe; equal data give equal bits on every machine.
// Cost: about 2 ns x draws x items x metrics x models.
#pragma once

#include <cstdint>
#include <vector>

namespace iha::scoring {

// values[metric][model][item], each in [0, 1], the same items for all; empty for a model without the metric.
struct RankedBenchmark {
  std::vector<std::vector<std::vector<double>>> values;
};

struct RankOptions {
  double confidence = 0.95;
  uint64_t seed = 1234;
  int32_t draws = 10000;
};

struct RankUncertainty {
  std::vector<double> average;             // of the data as they are; 0 for a model without any metric
  std::vector<double> low, high;           // quantiles of each model's average rank over the draws
  std::vector<std::vector<double>> above;  // [a][b]: share of draws with a ranked before b, half where they tie
  double same_order = 0.0;  // share of draws in which no two models stand the other way round than they do in `average`
};

// Every benchmark has the same number of models, at least one, and at least one item where any model has values.
RankUncertainty BootstrapRanks(const std::vector<RankedBenchmark>& benchmarks, const RankOptions& options);

}  // namespace iha::scoring
