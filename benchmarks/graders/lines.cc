#include "benchmarks/graders/lines.h"

#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::benchmarks {

using scoring::Ballot;
using scoring::VoteResult;
using scoring::VoteRule;

absl::StatusOr<ScoreLineResult> ScoreLine(Graders& graders, const std::string& metric, const std::string& gold,
                                          const std::string& output) {
  IHA_ASSIGN_OR_RETURN(scoring::Verdict verdict, graders.Judge(metric, gold, output));
  ScoreLineResult result;
  if (!verdict.extraction.text.empty() || verdict.extraction.valid) result.extracted = verdict.extraction.text;
  result.correct = verdict.correct;
  result.reason = std::move(verdict.reason);
  return result;
}

namespace {

// The group of a valid answer whose row is from before groups were stored: that of the first sample that its metric
// holds equal. All metrics of that time are pure.
int32_t OldGroup(const std::vector<const SampleGrade*>& grades, size_t index) {
  const scoring::AnswerMetric* metric = scoring::FindAnswerMetric(grades[index]->metric);
  for (size_t i = 0; i < index; ++i) {
    if (!grades[i]->valid) continue;
    const bool same_text = grades[i]->extracted == grades[index]->extracted;
    if (same_text || (metric != nullptr && metric->equal(grades[i]->extracted, grades[index]->extracted).equal)) {
      return static_cast<int32_t>(i);
    }
  }
  return static_cast<int32_t>(index);
}

}  // namespace

std::vector<Ballot> BallotsOf(const std::vector<const SampleGrade*>& grades) {
  std::vector<Ballot> ballots;
  ballots.reserve(grades.size());
  for (size_t i = 0; i < grades.size(); ++i) {
    const SampleGrade& grade = *grades[i];
    const int32_t group = grade.valid && grade.group < 0 ? OldGroup(grades, i) : grade.group;
    ballots.push_back({grade.extracted, fmt::format("{}", group), grade.valid, grade.score});
  }
  return ballots;
}

VoteRule RuleFor(VoteRule rule, std::string_view metric) {
  const scoring::AnswerMetric* pure = scoring::FindAnswerMetric(metric);
  return rule == VoteRule::kFirstSeen && pure != nullptr && pure->raw_votes ? VoteRule::kLmEval : rule;
}

absl::StatusOr<VoteLineResult> VoteLine(Graders& graders, const std::string& metric, VoteRule rule, int64_t k,
                                        const std::string& gold, const std::vector<std::string>& outputs) {
  IHA_RETURN_IF_ERROR(Graders::Find(metric).status());
  const std::vector<SampleGrade> grades = graders.GradeSamples(metric, gold, outputs);
  std::vector<const SampleGrade*> all;
  VoteLineResult result;
  for (const SampleGrade& grade : grades) {
    if (grade.unscored == Unscored::kGraderUnavailable) return FailedPrecondition("{}", grade.reason);
    if (grade.unscored != Unscored::kScored) {
      ++result.given_up;
    } else if (!grade.valid) {
      ++result.invalid;
    }
    all.push_back(&grade);
  }
  IHA_ASSIGN_OR_RETURN(VoteResult vote, scoring::Vote(RuleFor(rule, metric), k, BallotsOf(all)));
  if (result.given_up > 0) {
    // A gold that can't be read gives up each of them, and is a mistake of the line.
    const absl::Status gold_read = graders.Judge(metric, gold, "").status();
    if (absl::IsInvalidArgument(gold_read)) return gold_read;
    return result;
  }
  result.winner = std::move(vote.winner);
  result.correct = std::move(vote.value);
  result.tie = std::move(vote.tie);
  return result;
}

}  // namespace iha::benchmarks
