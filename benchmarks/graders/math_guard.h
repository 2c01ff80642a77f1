// math_guard.h: math.robust in a child process, so that no text of a model can take this process down with it.
//
// math.robust bounds its own work by counters; the child's limits (2 s of CPU time for a question, 64 MiB) only catch
// what the counters miss, a time-out only a child that neither answers nor computes (stopped, say). A question that
// ends its child, or has no answer in time, is asked once more, alone, in a fresh one; if that fails too the answer is
// ResourceExhausted: a grader error, never a verdict. Verdicts are those of scoring/answer_metric.h, byte
// for byte. Thread-safe, one question at a time. Blocking. NotFound: the program is not there.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "benchmarks/scoring/answer_metric.h"
#include "common/line_helper.h"

namespace iha::benchmarks {

inline constexpr char kGuardedMetric[] = "math.robust";
// The name of the child's program, which lies beside the others.
inline constexpr char kMathGuardProgram[] = "iha-grader";

class MathGuard {
 public:
  // Starts nothing yet. `timeout` is many times the CPU limit, for a busy machine; the second attempt has three times
  // as long.
  explicit MathGuard(std::string program, absl::Duration timeout = absl::Seconds(20))
      : program_(std::move(program)), timeout_(timeout) {}

  absl::StatusOr<scoring::Verdict> Judge(std::string_view gold, std::string_view output);
  absl::StatusOr<scoring::Equality> Equal(std::string_view a, std::string_view b);

 private:
  absl::StatusOr<std::string> Ask(const std::string& question);
  absl::StatusOr<std::string> AskOnce(const std::string& question, absl::Duration timeout);

  const std::string program_;
  const absl::Duration timeout_;
  std::mutex mutex_;
  std::unique_ptr<LineHelper> helper_;  // null: not started, or lost
};

// The path of kMathGuardProgram beside the running program. Unavailable: it is not there; no program grades without it.
absl::StatusOr<std::string> FindMathGuard();

// The child's side: one line in, one line out, until the input ends. Sets its own limits.
int RunMathGuard();

}  // namespace iha::benchmarks
