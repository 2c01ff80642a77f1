// answer_metric.h: the pure metrics that compare an answer in a text with a gold answer, by name.
//
// A metric is a value: how an output is judged against a gold answer, and when two answers are one. Compat metrics
// (gsm8k.strict_match, math.hendrycks, ...) reproduce another tool bug for bug; robust ones are ours; neither is ever
// silently improved (a change of any grade or group changes the benchmark's grader_version). Metrics that need another
// process are graders/'s. Pure, thread-safe.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace iha::scoring {

struct Extraction {
  std::string text;    // the answer as the metric's tool logs it; robust: canonical; "" when not valid
  bool valid = false;  // false: nothing could be extracted (compat metrics then log "[invalid]")
  std::string rule;    // what decided, human-readable
};

struct Verdict {
  Extraction extraction;
  bool correct = false;
  std::string reason;  // one line: rule, answer, gold
};

struct Equality {
  bool equal = false;
  std::string reason;  // one line
};

struct AnswerMetric {
  const char* name;
  const char* description;  // whose rule, one line
  bool raw_votes;           // its tool votes over raw texts, "[invalid]" among them (vote rule first_seen)
  // InvalidArgument when the metric can't read the gold answer.
  absl::StatusOr<Verdict> (*judge)(std::string_view gold, std::string_view output);
  // Whether two answers, as extracted or bare, are one: what votes group by. Not always transitive.
  Equality (*equal)(std::string_view a, std::string_view b);
  // Two extracted answers that both have a key are equal exactly when their keys are: what groups many without asking
  // of each pair.
  std::optional<std::string> (*key)(std::string_view answer);
};

std::span<const AnswerMetric> AnswerMetrics();
const AnswerMetric* FindAnswerMetric(std::string_view name);  // nullptr when unknown

}  // namespace iha::scoring
