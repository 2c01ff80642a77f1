// graders.h: every answer metric by name, pure or not: one way to judge an output, to compare two answers, to grade and
// group the samples of an item.
//
// Pure metrics (scoring/answer_metric.h) are judged anywhere alike. math.robust runs in a guarded child (math_guard.h)
// if one is given, as every program does: no text can then take more than its share of this process. math.minerva and
// math.prm800k need SymPy in a Python child (sympy_graders.h) and pinned libraries: not pure. Thread-safe; calls that
// need a child wait for each other. Blocking up to the children's time-outs.
// Errors: InvalidArgument (unknown metric, unreadable gold), FailedPrecondition (no libraries: "grader unavailable"),
// any other: "grader error", never a wrong answer.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/graders/code_judge.h"
#include "benchmarks/graders/math_guard.h"
#include "benchmarks/graders/sympy_graders.h"
#include "benchmarks/scoring/answer_metric.h"
#include "common/eval_types.h"

namespace iha::benchmarks {

struct GraderOptions {
  std::string libraries = {};  // folder with the Python libraries of tools/deps/graders.pypi; "" = none
  std::string guard = {};      // FindMathGuard(); "" = math.robust is judged in this process (tests, benches)
  std::shared_ptr<CodeJudge> judge = {};  // null: metrics of programs are unscored
};

struct GraderInfo {
  std::string name;
  std::string description;
  bool pure = true;  // a verdict needs nothing but the texts: the coordinator grades it again
};

class Graders {
 public:
  explicit Graders(GraderOptions options = {});

  CodeJudge* code_judge() const { return judge_.get(); }

  // All metrics of answers, in listing order.
  static std::vector<GraderInfo> List();
  // InvalidArgument lists the known ones.
  static absl::StatusOr<GraderInfo> Find(std::string_view metric);

  // `gold`: an answer, or a solution with its box.
  absl::StatusOr<scoring::Verdict> Judge(std::string_view metric, std::string_view gold, std::string_view output);
  absl::StatusOr<scoring::Equality> Equal(std::string_view metric, std::string_view a, std::string_view b);

  // One grade for each text, grouped by first representative: each valid answer joins the group of the earliest sample
  // that began one and that it equals. What can't be judged is unscored, for its reason.
  std::vector<SampleGrade> GradeSamples(const std::string& metric, const std::string& gold,
                                        const std::vector<std::string>& texts);

 private:
  SampleGrade GradeOne(const std::string& metric, const std::string& gold, const std::string& text);

  SympyGraders sympy_;
  const std::unique_ptr<MathGuard> guard_;  // null: none
  const std::shared_ptr<CodeJudge> judge_;
};

}  // namespace iha::benchmarks
