// tool_judge.h: programs judged by `iha-tool judge`, for processes that link no sandbox (iha-eval regrade).
//
// One child with all places to run, asked many things at a time: a line a question, a line an answer, in any order. Its
// verdicts are those of a worker (worker/sandbox/judge.h), without what is for people only: detail, out and err stay
// empty. Thread-safe. Start it from a thread that outlives it (ChildOptions). Errors of Start: Unavailable (the program
// is missing, or no sandbox holds here, with the limit's name). Of Ready and Judge: Unavailable once the child is lost;
// start another. Judge besides: Unavailable, no verdict on this program also on a second try.
#pragma once

#include <condition_variable>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "benchmarks/graders/code_judge.h"
#include "common/line_helper.h"

namespace iha::benchmarks {

// A question and its answer as they travel; both sides use these. Parsing gives InvalidArgument for what is neither.
struct JudgeQuestion {
  int64_t number = 0;
  CodeTask task;
  std::string candidate;
  CodeRule rule = CodeRule::kDefault;
};
struct JudgeAnswer {
  int64_t number = 0;
  absl::StatusOr<CodeVerdict> verdict = CodeVerdict{};  // the error's message travels, its code is Unavailable
};
std::string ToLine(const JudgeQuestion& question);
std::string ToLine(const JudgeAnswer& answer);
absl::StatusOr<JudgeQuestion> ParseQuestion(std::string_view line);
absl::StatusOr<JudgeAnswer> ParseAnswer(std::string_view line);
// The child's first line: how many programs it judges at a time, or why it judges none.
std::string GreetingLine(const absl::StatusOr<int>& parallel);

class ToolJudge final : public CodeJudge {
 public:
  // `tool`: the path of iha-tool. `jobs`: programs at a time, 0 = one for each core.
  static absl::StatusOr<std::unique_ptr<ToolJudge>> Start(const std::string& tool, int jobs);
  ~ToolJudge() override;

  absl::Status Ready() override;
  absl::StatusOr<CodeVerdict> Judge(const CodeTask& task, const std::string& candidate, CodeRule rule) override;
  int parallel() const override { return parallel_; }

 private:
  using Promise = std::promise<absl::StatusOr<CodeVerdict>>;

  ToolJudge(std::unique_ptr<LineHelper> child, int parallel);
  void Serve();
  absl::Status Send();
  absl::Status Receive();

  const std::unique_ptr<LineHelper> child_;  // Start's, then the thread's
  const int parallel_;
  std::mutex mutex_;
  std::condition_variable asked_;
  bool ending_ = false;
  absl::Status lost_;
  int64_t questions_ = 0;
  std::deque<std::pair<JudgeQuestion, Promise>> queue_;  // not sent; bounded by the threads that ask
  std::map<int64_t, Promise> sent_;
  std::thread thread_;
};

}  // namespace iha::benchmarks
