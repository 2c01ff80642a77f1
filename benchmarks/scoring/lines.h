// lines.h: `iha-eval score gsm8k|math` and `iha-eval vote` for one input line, as pure functions (CLI.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/scoring/rational.h"
#include "benchmarks/scoring/vote.h"

namespace iha::scoring {

struct ScoreLineResult {
  std::optional<std::string> extracted;  // compat metrics: as the tool logs it, "[invalid]" included; robust: canonical
                                         // rational, nullopt when no number was found
  bool correct = false;
  std::string reason;
};
// InvalidArgument for an unknown metric (lists the known ones) or a gold answer that the metric can't read.
absl::StatusOr<ScoreLineResult> ScoreLine(const std::string& metric, const std::string& gold,
                                          const std::string& output);

struct VoteLineResult {
  std::optional<std::string> winner;
  Rational correct;  // in [0, 1]
  Rational tie;
  int32_t invalid = 0;
};
// InvalidArgument also for k outside 1..outputs.size().
absl::StatusOr<VoteLineResult> VoteLine(const std::string& metric, VoteRule rule, int64_t k, const std::string& gold,
                                        const std::vector<std::string>& outputs);

}  // namespace iha::scoring
