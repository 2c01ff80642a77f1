// jsonl.h: a user's own questions: `jsonl:FILE?prompt=TEMPLATE&metric=NAME`, one JSON object a line.
//
// The prompt is the template with {field} replaced by the row's field ("{{" and "}}" are braces); the reference answer
// is the row's field `gold`. Every row is checked when the file is opened. A relative FILE is seen from the folder that
// a program runs in; every worker needs the same bytes (their digest is the data digest).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/benchmark.h"

namespace iha::benchmarks {

inline constexpr char kJsonlPrefix[] = "jsonl:";

// Named `name`, "jsonl:FILE" for listings; any grader of Graders::List is a metric.
BenchmarkInfo JsonlInfo(const std::string& name);

// `ref.name` begins with kJsonlPrefix. NotFound: no such file. InvalidArgument: a bad option, or a row that is no
// object, lacks a field of the template or its answer (says the line).
absl::StatusOr<std::unique_ptr<const Benchmark>> OpenJsonl(const BenchmarkRef& ref, std::shared_ptr<Graders> graders);

}  // namespace iha::benchmarks
