// choice.h: a user's own multiple-choice questions: `choice:FILE?prompt=TEMPLATE`, one JSON object a line. Nothing is
// drawn: each choice is scored by its log-likelihood behind the prompt, and acc and acc_norm are
// lm-evaluation-harness' (output_type multiple_choice).
//
// The model sees the template with {field} replaced by the row's field, then `delimiter` and the choice. Every row is
// checked when the file is opened. A relative FILE is seen from the folder that a program runs in; every worker needs
// the same bytes (their digest is the data digest).
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "benchmarks/benchmark.h"

namespace iha::benchmarks {

inline constexpr char kChoicePrefix[] = "choice:";

// Named `name`, "choice:FILE" for listings.
BenchmarkInfo ChoiceInfo(const std::string& name);

// `ref.name` begins with kChoicePrefix. NotFound: no such file. InvalidArgument: a bad option, or a row that is no
// object, lacks a field of the template, has no choices or an answer that is none of them ("FILE:LINE: field ...").
absl::StatusOr<std::unique_ptr<const Benchmark>> OpenChoice(const BenchmarkRef& ref);

}  // namespace iha::benchmarks
