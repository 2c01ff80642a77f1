// gsm8k.h: GSM8K (1,319 test items, Cobbe et al. 2021) under the protocols of lm-evaluation-harness 0.4.13, and the
// bundled demo set under the same protocol.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/benchmark.h"

namespace iha::benchmarks {

// gsm8k, gsm8k_cot, gsm8k_cot_llama, gsm8k_cot_zeroshot, gsm8k_demo, in listing order.
std::vector<BenchmarkInfo> Gsm8kFamily();

// `ref.name` must be one of the above. Errors as OpenBenchmark's.
absl::StatusOr<std::unique_ptr<const Benchmark>> OpenGsm8k(const BenchmarkRef& ref, const std::string& data_root,
                                                           std::shared_ptr<Graders> graders);

}  // namespace iha::benchmarks
