// judge: verdicts on programs for another process of this installation (benchmarks/graders/tool_judge.h).
#include <CLI/CLI.hpp>
#include <iostream>
#include <mutex>
#include <thread>

#include "benchmarks/graders/tool_judge.h"
#include "common/errors.h"
#include "common/flag_checks.h"
#include "common/parallel.h"
#include "worker/sandbox/judge.h"
#include "worker/tools/tool.h"

namespace iha::tools {
namespace {

constexpr int kMaxJobs = 256;

// A question that can't be read is nobody's: whoever sent it is another version.
class Judging {
 public:
  explicit Judging(benchmarks::CodeJudge& judge) : judge_(judge) {}

  // Of one place to run: question after question until there is none.
  void Serve() {
    while (const std::optional<std::string> line = Next()) {
      const absl::StatusOr<benchmarks::JudgeQuestion> question = benchmarks::ParseQuestion(*line);
      if (!question.ok()) return Stop(question.status());
      Say(benchmarks::ToLine(benchmarks::JudgeAnswer{
          .number = question->number, .verdict = judge_.Judge(question->task, question->candidate, question->rule)}));
    }
  }
  absl::Status status() const { return status_; }

 private:
  std::optional<std::string> Next() {
    const std::lock_guard lock(reading_);
    std::string line;
    if (!status_.ok() || !std::getline(std::cin, line)) return std::nullopt;
    return line;
  }
  void Say(const std::string& line) {
    const std::lock_guard lock(writing_);
    std::cout << line << std::endl;
  }
  void Stop(const absl::Status& status) {
    const std::lock_guard lock(reading_);
    status_.Update(status);
  }

  benchmarks::CodeJudge& judge_;
  std::mutex reading_;
  absl::Status status_;
  std::mutex writing_;
};

int Run(const Tool& tool, int jobs) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int places = jobs > 0 ? jobs : std::min(cores, kMaxJobs);
  auto sandbox = sandbox::Sandbox::Open(places);
  std::cout << benchmarks::GreetingLine(sandbox.ok() ? absl::StatusOr<int>(places) : sandbox.status()) << std::endl;
  if (!sandbox.ok()) return kExitUnavailable;
  sandbox::SandboxJudge judge(*std::move(sandbox));
  Judging judging(judge);
  const auto width = static_cast<size_t>(places);
  InParallel(width, width, [&](size_t) { judging.Serve(); });
  return judging.status().ok() ? kExitOk : Fail(tool, "judge", judging.status());
}

}  // namespace

void AddJudge(CLI::App& app, Tool& tool) {
  CLI::App* sub = app.add_subcommand("judge", "Questions about programs in, verdicts out; for other programs");
  sub->group("");
  const auto jobs = std::make_shared<int>(0);
  sub->add_option("--jobs", *jobs, "programs at a time; 0 = all cores")->check(WholeNumber(0, kMaxJobs));
  sub->footer("Example:\n  iha-tool judge --jobs 1 < questions.jsonl");
  sub->callback([jobs, &tool] { tool.exit_code = Run(tool, *jobs); });
}

}  // namespace iha::tools
