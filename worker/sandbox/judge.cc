#include "worker/sandbox/judge.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "common/status_macros.h"
#include "common/text.h"

namespace iha::sandbox {
namespace {

using benchmarks::CodeRule;
using benchmarks::CodeTask;
using benchmarks::CodeVerdict;

constexpr double kReferenceFactor = 10.0;
constexpr int32_t kReferenceCpuS = 600;  // a reference that takes longer is broken
constexpr int32_t kLmEvalS = 3;
constexpr size_t kNameBytes = 80;

// Ends that may be the machine's doing: others that run, memory that is short.
bool MayBeTheMachine(const RunOutcome& outcome) {
  return outcome.end == RunEnd::kCpu || outcome.end == RunEnd::kWall || outcome.end == RunEnd::kMemory ||
         (outcome.end == RunEnd::kSignal && outcome.detail == "SIGKILL");
}

// "TYPE" of "TYPE: message": messages may hold addresses.
std::string TypeIn(const std::string& detail) {
  return TerminalSafe(std::string_view(detail).substr(0, detail.find(':')), kNameBytes);
}

std::string ResultOf(const RunOutcome& outcome) {
  switch (outcome.end) {
    case RunEnd::kCompleted:
      return "passed";
    case RunEnd::kRaised:
      return "failed: " + TypeIn(outcome.detail);
    case RunEnd::kExit:
      return "exited";
    case RunEnd::kSignal:
      return "killed";
    case RunEnd::kCpu:
    case RunEnd::kWall:
      return "timed out";
    case RunEnd::kMemory:
      return "out of memory";
  }
  return "";
}

std::string ReasonOf(const RunOutcome& outcome) {
  switch (outcome.end) {
    case RunEnd::kCompleted:
      return "ran to its end";
    case RunEnd::kRaised:
      return TypeIn(outcome.detail) + " before the program's end";
    case RunEnd::kExit:
      return fmt::format("the process ended with exit code {} before the program did", TypeIn(outcome.detail));
    case RunEnd::kSignal:
      return "ended by " + TypeIn(outcome.detail);
    case RunEnd::kCpu:
    case RunEnd::kWall:
      return "reached its time limit, also alone";
    case RunEnd::kMemory:
      return "its processes took more memory than 4 GiB together";
  }
  return "";
}

}  // namespace

RunLimits LimitsFor(int32_t cpu_s) { return {.cpu_s = cpu_s, .wall = absl::Seconds(2 * cpu_s + 5)}; }

absl::Status LazyJudge::Ready() {
  const std::lock_guard lock(mutex_);
  if (judge_ != nullptr) return absl::OkStatus();
  IHA_ASSIGN_OR_RETURN(auto sandbox, Sandbox::Open(slots_));
  judge_ = std::make_unique<SandboxJudge>(std::move(sandbox));
  return absl::OkStatus();
}

absl::StatusOr<CodeVerdict> LazyJudge::Judge(const CodeTask& task, const std::string& candidate, CodeRule rule) {
  IHA_RETURN_IF_ERROR(Ready());
  return judge_->Judge(task, candidate, rule);
}

absl::StatusOr<RunLimits> SandboxJudge::LimitsOf(const CodeTask& task) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = reference_cpu_s_.find(task.id);
    if (known != reference_cpu_s_.end()) {
      const auto scaled = static_cast<int32_t>(std::ceil(kReferenceFactor * known->second));
      return scaled <= least_.cpu_s ? least_ : LimitsFor(scaled);
    }
  }
  IHA_ASSIGN_OR_RETURN(const RunOutcome outcome,
                       sandbox_->Run(benchmarks::ProgramOf(task, task.reference, CodeRule::kDefault),
                                     LimitsFor(kReferenceCpuS), Turn::kAlone));
  {
    const std::lock_guard lock(mutex_);
    reference_cpu_s_.emplace(task.id, outcome.cpu_s);
  }
  return LimitsOf(task);
}

absl::StatusOr<RunOutcome> SandboxJudge::Official(const CodeTask& task, const std::string& program, CodeRule rule) {
  if (rule == CodeRule::kLmEval) {
    const absl::Duration limit = absl::Seconds(kLmEvalS);
    IHA_ASSIGN_OR_RETURN(RunOutcome first, sandbox_->Run(program, LimitsFor(kLmEvalS), Turn::kShared));
    if (!MayBeTheMachine(first) && first.wall <= limit) return first;
    // That tool's limit is by the clock; it holds when nothing else of ours runs.
    return sandbox_->Run(program, {.cpu_s = kLmEvalS + 1, .wall = limit}, Turn::kAlone);
  }
  IHA_ASSIGN_OR_RETURN(RunOutcome first, sandbox_->Run(program, least_, Turn::kShared));
  if (!MayBeTheMachine(first)) return first;
  IHA_ASSIGN_OR_RETURN(const RunLimits limits, LimitsOf(task));
  return sandbox_->Run(program, limits, Turn::kAlone);
}

absl::Status SandboxJudge::Settle(const CodeTask& task, const std::string& candidate, const std::string& program,
                                  CodeRule rule, CodeVerdict& verdict) {
  const std::string setup = rule == CodeRule::kDefault ? task.setup : "";
  const std::string tests = setup.empty() ? task.tests : setup + "\n" + task.tests;
  IHA_ASSIGN_OR_RETURN(const std::vector<std::string> findings, sandbox_->Scan({.candidate = candidate,
                                                                                .tests = tests,
                                                                                .program = program,
                                                                                .own = task.entries,
                                                                                .reference = task.reference}));
  if (findings.empty()) return absl::OkStatus();
  std::string why = TerminalSafe(fmt::format("{}", fmt::join(findings, ", ")), 4 * kNameBytes);
  const ConfirmJob job{
      .candidate = candidate, .setup = setup, .tests = task.tests, .trusted = task.reference, .names = task.entries};
  IHA_ASSIGN_OR_RETURN(RunOutcome outcome, sandbox_->Confirm(job, least_, Turn::kShared));
  if (MayBeTheMachine(outcome)) {
    IHA_ASSIGN_OR_RETURN(const RunLimits limits, LimitsOf(task));
    IHA_ASSIGN_OR_RETURN(outcome, sandbox_->Confirm(job, limits, Turn::kAlone));
  }
  verdict.suspect = outcome.end != RunEnd::kCompleted;
  if (!verdict.suspect) {
    verdict.reason = "confirmed by tests in another process (" + std::move(why) + ")";
    return absl::OkStatus();
  }
  verdict.result = "suspect";
  verdict.reason = fmt::format("the program {}; the confirming run did not pass: {}", why, ReasonOf(outcome));
  verdict.detail = outcome.detail;
  return absl::OkStatus();
}

absl::StatusOr<CodeVerdict> SandboxJudge::Judge(const CodeTask& task, const std::string& candidate, CodeRule rule) {
  const std::string program = benchmarks::ProgramOf(task, candidate, rule);
  IHA_ASSIGN_OR_RETURN(RunOutcome outcome, Official(task, program, rule));
  CodeVerdict verdict{.official_passed = outcome.end == RunEnd::kCompleted,
                      .suspect = false,
                      .result = ResultOf(outcome),
                      .reason = ReasonOf(outcome),
                      .detail = std::move(outcome.detail),
                      .out = std::move(outcome.out),
                      .err = std::move(outcome.err)};
  // The compat rule counts what upstream counts.
  if (verdict.official_passed && rule == CodeRule::kDefault) {
    IHA_RETURN_IF_ERROR(Settle(task, candidate, program, rule, verdict));
  }
  return verdict;
}

}  // namespace iha::sandbox
