// answer_metric.h: the metrics that compare a short answer in a text with a gold answer, by name.
//
// A metric is a value: how an answer is taken from a text, and how two answers become comparable strings. Compat
// metrics (gsm8k.strict_match, ...) reproduce another tool bug for bug; robust ones are ours; neither is ever silently
// improved (a change of any verdict changes the benchmark's grader_version). Pure, thread-safe.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace iha::scoring {

struct Extraction {
  std::string text;    // the answer as the metric's tool logs it; robust: the canonical rational; "" when not valid
  bool valid = false;  // false: nothing could be extracted (compat metrics then log "[invalid]")
  std::string rule;    // what decided, human-readable
};

struct AnswerMetric {
  const char* name;
  const char* description;  // whose rule, one line
  Extraction (*extract)(std::string_view output);
  // What votes group by and what equality compares, from Extraction::text.
  std::string (*normalise)(std::string_view extracted);
  // The gold answer in that same form; nullopt when the metric can't read it.
  std::optional<std::string> (*gold)(std::string_view gold);
};

std::span<const AnswerMetric> AnswerMetrics();
const AnswerMetric* FindAnswerMetric(std::string_view name);  // nullptr when unknown

struct Verdict {
  Extraction extraction;
  bool correct = false;
  std::string reason;  // one line: rule, answer, gold
};
// InvalidArgument when the metric can't read the gold answer.
absl::StatusOr<Verdict> Judge(const AnswerMetric& metric, std::string_view gold, std::string_view output);

}  // namespace iha::scoring
