#include "benchmarks/scoring/lines.h"

#include "benchmarks/scoring/answer_metric.h"
#include "common/nearest.h"
#include "common/status_macros.h"

namespace iha::scoring {
namespace {

absl::StatusOr<const AnswerMetric*> MetricNamed(const std::string& name) {
  if (const AnswerMetric* metric = FindAnswerMetric(name)) return metric;
  std::vector<std::string> known;
  for (const AnswerMetric& metric : AnswerMetrics()) known.emplace_back(metric.name);
  return UnknownName("metric", name, known);
}

}  // namespace

absl::StatusOr<ScoreLineResult> ScoreLine(const std::string& metric, const std::string& gold,
                                          const std::string& output) {
  IHA_ASSIGN_OR_RETURN(const AnswerMetric* found, MetricNamed(metric));
  IHA_ASSIGN_OR_RETURN(Verdict verdict, Judge(*found, gold, output));
  ScoreLineResult result;
  if (!verdict.extraction.text.empty() || verdict.extraction.valid) result.extracted = verdict.extraction.text;
  result.correct = verdict.correct;
  result.reason = std::move(verdict.reason);
  return result;
}

absl::StatusOr<VoteLineResult> VoteLine(const std::string& metric, VoteRule rule, int64_t k, const std::string& gold,
                                        const std::vector<std::string>& outputs) {
  IHA_ASSIGN_OR_RETURN(const AnswerMetric* found, MetricNamed(metric));
  std::vector<Ballot> ballots;
  ballots.reserve(outputs.size());
  for (const std::string& output : outputs) {
    IHA_ASSIGN_OR_RETURN(const Verdict verdict, Judge(*found, gold, output));
    const Extraction& extraction = verdict.extraction;
    ballots.push_back(
        {extraction.text, found->normalise(extraction.text), extraction.valid, Score{verdict.correct ? 1 : 0, 1}});
  }
  IHA_ASSIGN_OR_RETURN(VoteResult vote, Vote(rule, k, ballots));
  return VoteLineResult{std::move(vote.winner), std::move(vote.value), std::move(vote.tie), vote.invalid};
}

}  // namespace iha::scoring
