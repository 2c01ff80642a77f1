// exemplar_leak.h: test items that stand among the few-shot exemplars of a benchmark's own prompts. Pure but for
// opening the benchmark's zero-shot form. Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/benchmark.h"

namespace iha::benchmarks {

struct ExemplarLeak {
  int64_t item = 0;  // shown, with its answer, before the question of
  std::string item_id;
  int64_t prompts = 0;      // so many items,
  bool in_its_own = false;  // its own among them: then the answer is given away
};

// Of the first `items` items, in order. Each item's bare prompt (the same benchmark with fewshot=0) is looked for in
// what stands before the bare prompt of every item. Empty: none, or the benchmark has no exemplars. Errors of
// OpenBenchmark.
absl::StatusOr<std::vector<ExemplarLeak>> FindExemplarLeaks(const Benchmark& benchmark, const std::string& data_root,
                                                            int64_t items);

}  // namespace iha::benchmarks
