// judge.h: verdicts on candidates' programs that the candidates can't write themselves.
//
// 1. The official program (candidate, setup, tests in one namespace, as upstream runs it) must run to its end in the
//    sandbox. A process that merely ends does not pass.
// 2. In one namespace a candidate can do whatever the tests can: return what equals everything, patch what the tests
//    use, read them, write their result. So a pass counts by itself only if the candidate is plain Python over plain
//    values (scan.py). Any other is confirmed: the tests run again in another process, over the reference's helpers,
//    and only plain data crosses. Not confirmed = suspect: passed by the official rule, not by the default one.
// 3. A time limit decides nothing while others run: who reached it is run once more, alone, with the limit that the
//    reference's own time gives (CPU time; twice of it and 5 s by the clock). kLmEval: 3 s by the clock, when alone.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "benchmarks/graders/code_judge.h"
#include "worker/sandbox/sandbox.h"

namespace iha::sandbox {

// Of a program that may take `cpu_s`: twice of it and 5 s by the clock.
RunLimits LimitsFor(int32_t cpu_s);

class SandboxJudge final : public benchmarks::CodeJudge {
 public:
  explicit SandboxJudge(std::unique_ptr<Sandbox> sandbox) : sandbox_(std::move(sandbox)) {}

  absl::Status Ready() override { return absl::OkStatus(); }
  absl::StatusOr<benchmarks::CodeVerdict> Judge(const benchmarks::CodeTask& task, const std::string& candidate,
                                                benchmarks::CodeRule rule) override;
  int parallel() const override { return sandbox_->slots(); }

  // At least this much time for every program. Before the first one is judged.
  void set_least_limits(const RunLimits& limits) { least_ = limits; }

 private:
  absl::StatusOr<RunOutcome> Official(const benchmarks::CodeTask& task, const std::string& program,
                                      benchmarks::CodeRule rule);
  absl::Status Settle(const benchmarks::CodeTask& task, const std::string& candidate, const std::string& program,
                      benchmarks::CodeRule rule, benchmarks::CodeVerdict& verdict);
  // The limits that count, from the reference's time (measured once a task, alone).
  absl::StatusOr<RunLimits> LimitsOf(const benchmarks::CodeTask& task);

  const std::unique_ptr<Sandbox> sandbox_;
  RunLimits least_ = LimitsFor(10);
  std::mutex mutex_;
  std::map<std::string, double> reference_cpu_s_;  // by task id
};

// Opens its sandbox with the first program: most workers never see one. Thread-safe.
class LazyJudge final : public benchmarks::CodeJudge {
 public:
  explicit LazyJudge(int slots) : slots_(slots) {}

  absl::Status Ready() override;
  absl::StatusOr<benchmarks::CodeVerdict> Judge(const benchmarks::CodeTask& task, const std::string& candidate,
                                                benchmarks::CodeRule rule) override;
  int parallel() const override { return slots_; }

 private:
  const int slots_;
  std::mutex mutex_;
  std::unique_ptr<SandboxJudge> judge_;  // null: not opened
};

}  // namespace iha::sandbox
