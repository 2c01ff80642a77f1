// ruler.h: RULER as benchmarks: one task at one length, "ruler:vt@4096", is one benchmark of 500 items.
//
// Its rows follow from the checkpoint's tokenizer: what is opened knows sizes, ids and digests only (planner,
// coordinator); ForCheckpoint makes the rows (worker). A prompt is a row's input and answer prefix as plain text, so
// that the prefix stands behind the assistant's header. Source: protocols.md 6, generate.h, score.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/benchmark.h"
#include "benchmarks/ruler/spec.h"

namespace iha::benchmarks::ruler {

// `name`: any of spec.h's; that of several cells is described by their first. InvalidArgument: those of CellNames.
absl::StatusOr<BenchmarkInfo> RulerInfo(const std::string& name);

// `ref.name` asks for one cell. Errors as OpenBenchmark's; NotFound besides: official rows of an essay task without the
// essays.
absl::StatusOr<std::unique_ptr<const Benchmark>> OpenRuler(const BenchmarkRef& ref, const std::string& data_root);

}  // namespace iha::benchmarks::ruler
