#include "benchmarks/reasoning/code_benchmark.h"

#include <algorithm>
#include <map>
#include <utility>

#include "benchmarks/graders/graders.h"
#include "common/errors.h"
#include "common/parallel.h"
#include "common/status_macros.h"

namespace iha::benchmarks {
namespace {

using Verdicts = std::map<std::pair<std::string, CodeRule>, absl::StatusOr<CodeVerdict>>;

// Not the status' own words: they may name processes and machines, and equal runs have equal rows.
SampleGrade Ungraded(const std::string& metric, const absl::Status& status) {
  SampleGrade grade;
  grade.metric = metric;
  const bool unavailable = absl::IsFailedPrecondition(status);
  grade.unscored = unavailable ? Unscored::kGraderUnavailable : Unscored::kGraderError;
  grade.reason = unavailable ? "grader unavailable: programs are judged only where a worker's sandbox holds"
                             : "grader error: the sandbox gave no verdict, also on a second try";
  return grade;
}

SampleGrade GradeOf(const CodeMetric& metric, const absl::StatusOr<CodeVerdict>& verdict) {
  if (!verdict.ok()) return Ungraded(metric.info.name, verdict.status());
  const bool passed = metric.counts_suspects ? verdict->official_passed : verdict->passed();
  return {.metric = metric.info.name,
          .extracted = verdict->result,
          .valid = true,
          .unscored = Unscored::kScored,
          .score = {passed ? 1 : 0, 1},
          .reason = verdict->reason,
          .group = -1};
}

class CodeBenchmark final : public Benchmark {
 public:
  CodeBenchmark(CodeProtocol protocol, std::shared_ptr<Graders> graders)
      : protocol_(std::move(protocol)), graders_(std::move(graders)) {}

  const BenchmarkInfo& info() const override { return protocol_.info; }
  const BenchmarkRef& ref() const override { return protocol_.ref; }
  int64_t size() const override { return static_cast<int64_t>(protocol_.items.size()); }
  std::string ItemId(int64_t index) const override { return At(index).id; }
  Prompt Render(int64_t index) const override { return protocol_.render(index); }
  std::string Gold(int64_t index) const override { return At(index).task.reference; }
  Digest data_digest() const override { return protocol_.data_digest; }

  CodeSample Code(int64_t index, const std::string& text) const override {
    const CodeMetric& first = protocol_.metrics.front();
    std::string candidate = CandidateOf(index, text, first);
    std::string program = ProgramOf(At(index).task, candidate, first.rule);
    return {std::move(candidate), std::move(program)};
  }

  std::vector<std::vector<SampleGrade>> Grade(int64_t index, const std::vector<std::string>& texts,
                                              const std::vector<MetricInfo>& metrics) const override {
    Verdicts verdicts;  // equal candidates are judged once
    for (const std::string& text : texts) {
      for (const MetricInfo& metric : metrics) {
        const CodeMetric& code = Find(metric.name);
        verdicts.try_emplace({CandidateOf(index, text, code), code.rule}, FailedPrecondition("no judge"));
      }
    }
    JudgeAll(At(index).task, verdicts);
    std::vector<std::vector<SampleGrade>> grades;
    for (const std::string& text : texts) {
      std::vector<SampleGrade>& of_text = grades.emplace_back();
      for (const MetricInfo& metric : metrics) {
        const CodeMetric& code = Find(metric.name);
        of_text.push_back(GradeOf(code, verdicts.at({CandidateOf(index, text, code), code.rule})));
      }
    }
    return grades;
  }

 private:
  const CodeItem& At(int64_t index) const { return protocol_.items[static_cast<size_t>(index)]; }

  const CodeMetric& Find(const std::string& name) const {
    const auto at = std::find_if(protocol_.metrics.begin(), protocol_.metrics.end(),
                                 [&](const CodeMetric& metric) { return metric.info.name == name; });
    return *at;  // `metrics` are some of info().metrics
  }

  std::string CandidateOf(int64_t index, const std::string& text, const CodeMetric& metric) const {
    return At(index).head + scoring::ExtractCode(metric.extract, text);
  }

  void JudgeAll(const CodeTask& task, Verdicts& verdicts) const {
    CodeJudge* const judge = graders_->code_judge();
    if (judge == nullptr) return;
    std::vector<Verdicts::iterator> all;
    for (auto at = verdicts.begin(); at != verdicts.end(); ++at) all.push_back(at);
    InParallel(all.size(), static_cast<size_t>(judge->parallel()), [&](size_t i) {
      const auto& [candidate, rule] = all[i]->first;
      all[i]->second = judge->Judge(task, candidate, rule);
    });
  }

  const CodeProtocol protocol_;
  const std::shared_ptr<Graders> graders_;
};

}  // namespace

std::unique_ptr<const Benchmark> MakeCodeBenchmark(CodeProtocol protocol, std::shared_ptr<Graders> graders) {
  return std::make_unique<const CodeBenchmark>(std::move(protocol), std::move(graders));
}

}  // namespace iha::benchmarks
