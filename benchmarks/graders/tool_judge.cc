#include "benchmarks/graders/tool_judge.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "common/errors.h"
#include "common/json.h"
#include "common/status_macros.h"
#include "common/text.h"

namespace iha::benchmarks {
namespace {

using Json = nlohmann::json;

constexpr absl::Duration kStartTimeout = absl::Minutes(10);  // self-tests of all places on a busy machine
// Each program is bounded where it runs; this only ends a child that does nothing any more.
constexpr absl::Duration kAnswerTimeout = absl::Hours(2);
constexpr size_t kAhead = 4;  // questions of one place that lie with the child

std::string LineOf(const Json& json) { return json.dump(-1, ' ', true, Json::error_handler_t::replace); }

// Of lines that are nobody's but this program's own.
absl::StatusOr<Json> ObjectIn(std::string_view line) {
  Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) return json;
  return InvalidArgument("judge: found {}; expected a JSON object", TerminalSafe(line, 80));
}

template <class T>
bool Take(const Json& object, const char* key, T& value) {
  const auto at = object.find(key);
  if (at == object.end()) return false;
  if constexpr (std::is_same_v<T, std::string>) {
    if (!at->is_string()) return false;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!at->is_boolean()) return false;
  } else if constexpr (std::is_integral_v<T>) {
    if (!JsonInteger<T>(*at).has_value()) return false;
  } else {
    const auto text = [](const Json& part) { return part.is_string(); };
    if (!at->is_array() || !std::all_of(at->begin(), at->end(), text)) return false;
  }
  value = at->get<T>();
  return true;
}

}  // namespace

std::string ToLine(const JudgeQuestion& question) {
  return LineOf({{"number", question.number},
                 {"id", question.task.id},
                 {"setup", question.task.setup},
                 {"tests", question.task.tests},
                 {"reference", question.task.reference},
                 {"entries", question.task.entries},
                 {"candidate", question.candidate},
                 {"lm_eval", question.rule == CodeRule::kLmEval}});
}

absl::StatusOr<JudgeQuestion> ParseQuestion(std::string_view line) {
  IHA_ASSIGN_OR_RETURN(const Json json, ObjectIn(line));
  JudgeQuestion question;
  bool lm_eval = false;
  const bool whole = Take(json, "number", question.number) && Take(json, "id", question.task.id) &&
                     Take(json, "setup", question.task.setup) && Take(json, "tests", question.task.tests) &&
                     Take(json, "reference", question.task.reference) && Take(json, "entries", question.task.entries) &&
                     Take(json, "candidate", question.candidate) && Take(json, "lm_eval", lm_eval);
  if (!whole) return InvalidArgument("judge: a question lacks a field, or has one of another type");
  question.rule = lm_eval ? CodeRule::kLmEval : CodeRule::kDefault;
  return question;
}

std::string ToLine(const JudgeAnswer& answer) {
  Json json = {{"number", answer.number}};
  if (!answer.verdict.ok()) {
    json["error"] = std::string(answer.verdict.status().message());
    return LineOf(json);
  }
  json["official_passed"] = answer.verdict->official_passed;
  json["suspect"] = answer.verdict->suspect;
  json["result"] = answer.verdict->result;
  json["reason"] = answer.verdict->reason;
  return LineOf(json);
}

absl::StatusOr<JudgeAnswer> ParseAnswer(std::string_view line) {
  IHA_ASSIGN_OR_RETURN(const Json json, ObjectIn(line));
  JudgeAnswer answer;
  CodeVerdict verdict;
  std::string error;
  if (!Take(json, "number", answer.number)) return InvalidArgument("judge: an answer has no number");
  if (Take(json, "error", error)) {
    answer.verdict = Unavailable("{}", error);
    return answer;
  }
  const bool whole = Take(json, "official_passed", verdict.official_passed) && Take(json, "suspect", verdict.suspect) &&
                     Take(json, "result", verdict.result) && Take(json, "reason", verdict.reason);
  if (!whole) return InvalidArgument("judge: an answer lacks a field, or has one of another type");
  answer.verdict = std::move(verdict);
  return answer;
}

std::string GreetingLine(const absl::StatusOr<int>& parallel) {
  if (parallel.ok()) return LineOf({{"parallel", *parallel}});
  return LineOf({{"refused", std::string(parallel.status().message())}});
}

absl::StatusOr<std::unique_ptr<ToolJudge>> ToolJudge::Start(const std::string& tool, int jobs) {
  ChildOptions options;
  options.argv = {tool, "judge", "--jobs", std::to_string(jobs)};
  absl::StatusOr<std::unique_ptr<LineHelper>> child = LineHelper::Start(options);
  if (!child.ok()) {
    return Unavailable("{}; it judges programs and belongs beside iha-eval", std::string(child.status().message()));
  }
  const absl::StatusOr<std::string> line = (*child)->ReadLine(kStartTimeout);
  if (!line.ok()) return Unavailable("{}", std::string(line.status().message()));
  IHA_ASSIGN_OR_RETURN(const Json greeting, ObjectIn(*line));
  int parallel = 0;
  std::string refused;
  if (Take(greeting, "refused", refused)) return Unavailable("{}", refused);
  if (!Take(greeting, "parallel", parallel)) return Internal("{} judge: its first line says nothing", tool);
  return std::unique_ptr<ToolJudge>(new ToolJudge(*std::move(child), parallel));
}

ToolJudge::ToolJudge(std::unique_ptr<LineHelper> child, int parallel)
    : child_(std::move(child)), parallel_(parallel), thread_([this] { Serve(); }) {}

ToolJudge::~ToolJudge() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  asked_.notify_all();
  thread_.join();
}

absl::Status ToolJudge::Ready() {
  const std::lock_guard lock(mutex_);
  return lost_;
}

absl::StatusOr<CodeVerdict> ToolJudge::Judge(const CodeTask& task, const std::string& candidate, CodeRule rule) {
  Promise promise;
  std::future<absl::StatusOr<CodeVerdict>> verdict = promise.get_future();
  {
    const std::lock_guard lock(mutex_);
    if (!lost_.ok()) return lost_;
    queue_.emplace_back(JudgeQuestion{.number = ++questions_, .task = task, .candidate = candidate, .rule = rule},
                        std::move(promise));
  }
  asked_.notify_all();
  return verdict.get();
}

void ToolJudge::Serve() {
  absl::Status status;
  while (status.ok()) {
    {
      std::unique_lock lock(mutex_);
      asked_.wait(lock, [this] { return ending_ || !queue_.empty() || !sent_.empty(); });
      if (ending_ && queue_.empty() && sent_.empty()) return;
    }
    status = Send();
    if (status.ok()) status = Receive();
  }
  const std::lock_guard lock(mutex_);
  lost_ = Unavailable("judge: its child was lost: {}", std::string(status.message()));
  for (auto& [question, promise] : queue_) promise.set_value(lost_);
  for (auto& [number, promise] : sent_) promise.set_value(lost_);
  queue_.clear();
  sent_.clear();
}

// What waits, as long as the child has work for its places and the next turn.
absl::Status ToolJudge::Send() {
  while (true) {
    std::string line;
    {
      const std::lock_guard lock(mutex_);
      if (queue_.empty() || sent_.size() >= kAhead * static_cast<size_t>(parallel_)) return absl::OkStatus();
      auto& [question, promise] = queue_.front();
      line = ToLine(question);
      sent_.emplace(question.number, std::move(promise));
      queue_.pop_front();
    }
    IHA_RETURN_IF_ERROR(child_->WriteLine(line, kAnswerTimeout));
  }
}

// The next answer, to whoever waits for it.
absl::Status ToolJudge::Receive() {
  IHA_ASSIGN_OR_RETURN(const std::string line, child_->ReadLine(kAnswerTimeout));
  IHA_ASSIGN_OR_RETURN(JudgeAnswer answer, ParseAnswer(line));
  const std::lock_guard lock(mutex_);
  const auto at = sent_.find(answer.number);
  if (at == sent_.end()) return Internal("judge: an answer to question {}, which waits for none", answer.number);
  at->second.set_value(std::move(answer.verdict));
  sent_.erase(at);
  return absl::OkStatus();
}

}  // namespace iha::benchmarks
