// humaneval.h: HumanEval (164 programming tasks, Chen et al. 2021), as a completion and as an instruction.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/benchmark.h"

namespace iha::benchmarks {

// humaneval, humaneval_instruct, in listing order.
std::vector<BenchmarkInfo> HumanEvalFamily();

// `ref.name` must be one of the above. Errors as OpenBenchmark's.
absl::StatusOr<std::unique_ptr<const Benchmark>> OpenHumanEval(const BenchmarkRef& ref, const std::string& data_root,
                                                               std::shared_ptr<Graders> graders);

}  // namespace iha::benchmarks
