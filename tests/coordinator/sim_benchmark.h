// sim_benchmark.h: a benchmark whose items are graded at a glance, for tests of the coordinator.
//
// Option `items` = how many there are. Item i asks "item 000i"; the right answer is "ans<i>". Base metrics: sim.exact
// (text equals the answer) and sim.any (text is not empty); sim.word is the same, but said to need another process.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "benchmarks/benchmark.h"
#include "coordinator/planner/planner.h"

namespace iha::coordinator {

struct SimBenchmarkOptions {
  std::string grader_version = "sim-grader/1";
  std::string data = "v1";            // what data_digest is made of
  bool answers_of_their_own = false;  // each sample of an item reads as another answer, whatever its text
};

// NotFound for any other name than "sim"; InvalidArgument for a bad option.
absl::StatusOr<std::unique_ptr<const benchmarks::Benchmark>> OpenSimBenchmark(const BenchmarkRef& ref,
                                                                              const SimBenchmarkOptions& options = {});
BenchmarkOpener SimOpener(const SimBenchmarkOptions& options = {});

// A greedy sweep over `items` sim items, k samples each, shards of `shard_items`.
SweepSpec SimSweep(int64_t items, int32_t k, int64_t shard_items);

}  // namespace iha::coordinator
