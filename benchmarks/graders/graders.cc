#include "benchmarks/graders/graders.h"

#include <unordered_map>

#include "common/errors.h"
#include "common/nearest.h"
#include "common/status_macros.h"

namespace iha::benchmarks {
namespace {

using scoring::AnswerMetric;
using scoring::Equality;
using scoring::Verdict;

// Not the status' own words: they may name folders and processes, and equal runs have equal rows.
void MarkUnscored(const absl::Status& status, SampleGrade& grade) {
  const bool unavailable = absl::IsFailedPrecondition(status);
  grade.unscored = unavailable ? Unscored::kGraderUnavailable : Unscored::kGraderError;
  grade.valid = false;
  grade.score = {};
  grade.group = -1;
  if (unavailable) {
    grade.reason = "grader unavailable: its libraries are not installed (`./dev deps test`)";
  } else if (absl::IsInvalidArgument(status)) {
    grade.reason = std::string(status.message());
  } else {
    grade.reason = "grader error: no verdict within its limits, also alone";
  }
}

}  // namespace

Graders::Graders(GraderOptions options)
    : sympy_(std::move(options.libraries)),
      guard_(options.guard.empty() ? nullptr : std::make_unique<MathGuard>(std::move(options.guard))),
      judge_(std::move(options.judge)) {}

std::vector<GraderInfo> Graders::List() {
  std::vector<GraderInfo> all;
  for (const AnswerMetric& metric : scoring::AnswerMetrics()) all.push_back({metric.name, metric.description, true});
  all.push_back({"math.minerva", "lm-evaluation-harness 0.4.13 minerva_math 3.1, bug for bug (SymPy)", false});
  all.push_back({"math.prm800k", "the grader of openai/prm800k, bug for bug (SymPy)", false});
  return all;
}

absl::StatusOr<GraderInfo> Graders::Find(std::string_view metric) {
  std::vector<std::string> known;
  for (GraderInfo& info : List()) {
    if (info.name == metric) return std::move(info);
    known.push_back(std::move(info.name));
  }
  return UnknownName("metric", metric, known);
}

absl::StatusOr<Verdict> Graders::Judge(std::string_view metric, std::string_view gold, std::string_view output) {
  if (guard_ != nullptr && metric == kGuardedMetric) return guard_->Judge(gold, output);
  if (const AnswerMetric* pure = scoring::FindAnswerMetric(metric)) return pure->judge(gold, output);
  IHA_RETURN_IF_ERROR(Find(metric).status());
  IHA_ASSIGN_OR_RETURN(SympyVerdict sympy, sympy_.Grade(metric, GradeForm::kOutput, gold, output));
  Verdict verdict{.extraction = {std::move(sympy.extracted), sympy.valid, std::string(metric)},
                  .correct = sympy.correct,
                  .reason = fmt::format("{} {} gold {}: {}", sympy.normal, sympy.correct ? "equals" : "differs from",
                                        sympy.gold, sympy.reason)};
  return verdict;
}

absl::StatusOr<Equality> Graders::Equal(std::string_view metric, std::string_view a, std::string_view b) {
  if (guard_ != nullptr && metric == kGuardedMetric) return guard_->Equal(a, b);
  if (const AnswerMetric* pure = scoring::FindAnswerMetric(metric)) return pure->equal(a, b);
  IHA_RETURN_IF_ERROR(Find(metric).status());
  IHA_ASSIGN_OR_RETURN(SympyVerdict sympy, sympy_.Grade(metric, GradeForm::kPair, a, b));
  return Equality{sympy.correct, std::move(sympy.reason)};
}

SampleGrade Graders::GradeOne(const std::string& metric, const std::string& gold, const std::string& text) {
  SampleGrade grade;
  grade.metric = metric;
  absl::StatusOr<Verdict> verdict = Judge(metric, gold, text);
  if (!verdict.ok()) {
    MarkUnscored(verdict.status(), grade);
    return grade;
  }
  grade.extracted = std::move(verdict->extraction.text);
  grade.valid = verdict->extraction.valid;
  grade.score = {verdict->correct ? 1 : 0, 1};
  grade.reason = std::move(verdict->reason);
  return grade;
}

std::vector<SampleGrade> Graders::GradeSamples(const std::string& metric, const std::string& gold,
                                               const std::vector<std::string>& texts) {
  const AnswerMetric* const pure = scoring::FindAnswerMetric(metric);
  std::vector<SampleGrade> grades;
  grades.reserve(texts.size());
  std::unordered_map<std::string, int32_t> by_text;  // of the representatives; of all texts, once they have a group
  std::unordered_map<std::string, int32_t> by_key;
  std::vector<size_t> representatives;
  std::vector<size_t> without_key;
  for (size_t i = 0; i < texts.size(); ++i) {
    SampleGrade& grade = grades.emplace_back(GradeOne(metric, gold, texts[i]));
    if (!grade.valid) continue;
    const auto [same_text, is_new] = by_text.emplace(grade.extracted, static_cast<int32_t>(i));
    if (!is_new) {
      grade.group = same_text->second;
      continue;
    }
    const auto key = pure != nullptr ? pure->key(grade.extracted) : std::nullopt;
    const auto same_key = key.has_value() ? by_key.find(*key) : by_key.end();
    const size_t before = same_key == by_key.end() ? i : static_cast<size_t>(same_key->second);
    // With a key only the representatives without one are in question.
    for (const size_t r : key.has_value() ? without_key : representatives) {
      if (r >= before) break;
      const absl::StatusOr<Equality> same = Equal(metric, grades[r].extracted, grade.extracted);
      if (!same.ok()) {
        MarkUnscored(same.status(), grade);
        break;
      }
      if (same->equal) {
        grade.group = static_cast<int32_t>(r);
        break;
      }
    }
    if (!grade.valid) {
      by_text.erase(same_text);
      continue;
    }
    if (grade.group < 0) grade.group = static_cast<int32_t>(before);
    same_text->second = grade.group;
    if (grade.group != static_cast<int32_t>(i)) continue;
    representatives.push_back(i);
    if (key.has_value()) {
      by_key.emplace(*key, grade.group);
    } else {
      without_key.push_back(i);
    }
  }
  return grades;
}

}  // namespace iha::benchmarks
