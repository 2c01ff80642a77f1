// lines.h: `iha-eval score gsm8k|math|equiv` and `iha-eval vote` for one input line (CLI.md).
//
// Thread-safe. Blocking and errors as Graders'.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/graders/graders.h"
#include "benchmarks/scoring/rational.h"
#include "benchmarks/scoring/vote.h"

namespace iha::benchmarks {

struct ScoreLineResult {
  std::optional<std::string> extracted;  // compat metrics: as the tool logs it, "[invalid]" included; robust:
                                         // canonical, nullopt when nothing was found
  bool correct = false;
  std::string reason;
};
absl::StatusOr<ScoreLineResult> ScoreLine(Graders& graders, const std::string& metric, const std::string& gold,
                                          const std::string& output);

struct VoteLineResult {
  std::optional<std::string> winner;
  scoring::Rational correct;  // in [0, 1]
  scoring::Rational tie;
  int32_t invalid = 0;
  int32_t given_up = 0;  // outputs that the grader gave no verdict on, also alone; above 0 there is no vote: as in a
                         // run, nobody knows what they would have changed
};
// InvalidArgument also for k outside 1..outputs.size() and for a gold that the metric can't read.
absl::StatusOr<VoteLineResult> VoteLine(Graders& graders, const std::string& metric, scoring::VoteRule rule, int64_t k,
                                        const std::string& gold, const std::vector<std::string>& outputs);

// The ballots of one metric's grades, one a sample, and the rule as that metric's tool follows it: first_seen over a
// metric whose tool votes over raw texts is that tool's own (lm_eval).
std::vector<scoring::Ballot> BallotsOf(const std::vector<const SampleGrade*>& grades);
scoring::VoteRule RuleFor(scoring::VoteRule rule, std::string_view metric);

}  // namespace iha::benchmarks
