// mbpp.h: MBPP (Austin et al. 2021): the 500 test tasks of the full set, and the 427 sanitized ones.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/benchmark.h"

namespace iha::benchmarks {

// mbpp, mbpp_instruct, mbpp_sanitized, in listing order.
std::vector<BenchmarkInfo> MbppFamily();

// `ref.name` must be one of the above. Errors as OpenBenchmark's.
absl::StatusOr<std::unique_ptr<const Benchmark>> OpenMbpp(const BenchmarkRef& ref, const std::string& data_root,
                                                          std::shared_ptr<Graders> graders);

}  // namespace iha::benchmarks
