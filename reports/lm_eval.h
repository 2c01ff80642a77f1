// lm_eval.h: results of lm-evaluation-harness (0.4.x: results_*.json, samples_*.jsonl) as imported rows, and which of
// its names are ours.
//
// Only a task, metric and filter whose rule a compat metric of ours reproduces has a name of ours; the rest keeps
// "TASK METRIC,FILTER" for its column. Pure; thread: any. Errors: InvalidArgument, one line that begins with `where`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/imported.h"

namespace iha::reports {

struct LmEvalName {
  const char* task;
  const char* metric;
  const char* filter;
  const char* benchmark;  // ours
  const char* name;       // our metric
};
// Where it has two forms of one of ours, the first is the one to write.
std::span<const LmEvalName> LmEvalNames();

// What export adds under this key, to the config of a task and to each line of samples, so that import finds the very
// entry, metric and fraction again; other tools ignore it.
inline constexpr char kIhaEval[] = "iha_eval";

// results_*.json: one row, named by the file's model_name, else by config.model_args ("" if neither says). What is no
// share (outside [0, 1]) or is better when lower is left out with a note. A share of n items is taken as the count that
// it must be of. RULER's tasks have a metric for each length, -1 where it was not run: no value.
absl::StatusOr<ImportedRow> ImportLmEvalResults(std::string_view text, std::string_view where);

// samples_TASK_*.jsonl: one row with a value for each metric and filter, and an interval over its items. `task`,
// `model`: what the lines do not say.
absl::StatusOr<ImportedRow> ImportLmEvalSamples(std::string_view text, const std::string& task,
                                                const std::string& model, std::string_view where);

}  // namespace iha::reports
