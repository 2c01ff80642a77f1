// sympy_graders.h: the compat graders that are SymPy programs, run whole in one helper process over the pinned
// libraries.
//
//   math.minerva   lm-evaluation-harness 0.4.13, minerva_math 3.1 (exact_match)
//   math.prm800k   openai/prm800k, grade_answer
//
// The helper is a Python program of ours (sympy_script.cc) that needs sympy 1.14.0, antlr4-python3-runtime 4.11.0 and
// pylatexenc 2.11: `./dev deps test` unpacks them into .deps/graders, `pip install --target DIR` makes another folder.
// Rules: protocols.md section 2. SymPy's own answers can depend on Python's hash seed and on what it was asked before
// ("0/0" against "0"): the seed is fixed and its caches are cleared for every question, so that a verdict depends on
// nothing but the texts. The tools' clock limits are left out. Each question has a budget of the helper's CPU time, and
// a time-out for a helper that neither answers nor computes; a question that spends either is asked again, alone, in a
// fresh helper. Thread-safe (one question at a time); blocking up to the two time-outs. Errors of Grade:
// FailedPrecondition (no Python or libraries: the metric is unscored, "grader unavailable"; retry only after
// installing), DeadlineExceeded, ResourceExhausted or Unavailable (the question failed twice: "grader error", never a
// wrong answer), InvalidArgument (unknown metric).
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/line_helper.h"

namespace iha::benchmarks {

enum class GradeForm {
  kOutput,  // `given` is a model's whole text, `gold` a solution with its box or a bare answer
  kPair,    // two answers, as the tool's own comparison takes them
};

struct SympyVerdict {
  std::string extracted;  // the answer as the tool logs it
  bool valid = false;     // false: nothing could be extracted
  std::string normal;     // the given answer in the tool's normal form
  std::string gold;       // the gold answer in it
  bool correct = false;
  std::string reason;  // which step decided, one line
};

// Crash guards, above what any honest question needs (math.minerva's own tool gives up after 5 s by the clock).
struct SympyLimits {
  absl::Duration timeout = absl::Seconds(60);
  absl::Duration timeout_alone = absl::Seconds(120);
  int cpu_seconds = 5;
  int cpu_seconds_alone = 10;
};

class SympyGraders {
 public:
  // `libraries`: the folder that holds them; "" = none, every Grade is FailedPrecondition. Starts nothing yet.
  explicit SympyGraders(std::string libraries, const SympyLimits& limits = {})
      : libraries_(std::move(libraries)), limits_(limits) {}

  static bool Knows(std::string_view metric);

  absl::StatusOr<SympyVerdict> Grade(std::string_view metric, GradeForm form, std::string_view gold,
                                     std::string_view given);

 private:
  absl::Status Start();
  absl::StatusOr<SympyVerdict> Ask(const std::string& question, absl::Duration timeout);

  const std::string libraries_;
  const SympyLimits limits_;
  std::mutex mutex_;
  std::unique_ptr<LineHelper> helper_;  // null: not started, or lost
};

}  // namespace iha::benchmarks
