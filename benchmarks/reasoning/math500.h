// math500.h: MATH-500 (the 500 test problems of openai/prm800k's split of MATH) under three protocols.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/benchmark.h"

namespace iha::benchmarks {

// math500 (minerva, 4-shot), math500_hendrycks, math500_boxed (0-shot chat), in listing order.
std::vector<BenchmarkInfo> Math500Family();

// `ref.name` must be one of the above. Errors as OpenBenchmark's.
absl::StatusOr<std::unique_ptr<const Benchmark>> OpenMath500(const BenchmarkRef& ref, const std::string& data_root,
                                                             std::shared_ptr<Graders> graders);

}  // namespace iha::benchmarks
