#include "benchmarks/graders/sympy_graders.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "benchmarks/graders/sympy_script.h"
#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"

namespace iha::benchmarks {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 2> kMetrics = {"math.minerva", "math.prm800k"};
constexpr const char* kPython = "/usr/bin/python3";
constexpr uint64_t kMemoryBytes = uint64_t{2} << 30;
constexpr absl::Duration kStartTimeout = absl::Seconds(120);  // importing SymPy on a busy machine
constexpr const char* kHashSeed = "PYTHONHASHSEED=0";         // any fixed seed will do
constexpr const char* kHowToInstall = "install them with `./dev deps test`";

std::string TextOf(const Json& answer, const char* key) {
  const auto it = answer.find(key);
  return it == answer.end() || !it->is_string() ? "" : it->get<std::string>();
}

bool FlagOf(const Json& answer, const char* key) {
  const auto it = answer.find(key);
  return it != answer.end() && it->is_boolean() && it->get<bool>();
}

}  // namespace

bool SympyGraders::Knows(std::string_view metric) {
  return std::find(kMetrics.begin(), kMetrics.end(), metric) != kMetrics.end();
}

absl::Status SympyGraders::Start() {
  if (libraries_.empty()) {
    return FailedPrecondition("SymPy graders: no folder with their libraries is given; {}", kHowToInstall);
  }
  ChildOptions options;
  // Not -I: it would ignore the hash seed and the folder. The environment holds no other PYTHON variable.
  options.argv = {kPython, "-s", "-P", "-B", "-c", kSympyScript};
  options.env = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", kHashSeed, "PYTHONPATH=" + libraries_};
  options.limits = {{RLIMIT_AS, kMemoryBytes}, {RLIMIT_CORE, 0}};
  absl::StatusOr<std::unique_ptr<LineHelper>> helper = LineHelper::Start(options);
  if (absl::IsNotFound(helper.status()) || absl::IsFailedPrecondition(helper.status())) {
    return FailedPrecondition("SymPy graders: {}; {}", std::string(helper.status().message()), kHowToInstall);
  }
  IHA_RETURN_IF_ERROR(helper.status());
  IHA_ASSIGN_OR_RETURN(const std::string line, (*helper)->ReadLine(kStartTimeout));
  const Json ready = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!ready.is_object() || !FlagOf(ready, "ready")) {
    const std::string missing = ready.is_object() ? TextOf(ready, "missing") : "";
    return FailedPrecondition("SymPy graders: {}: {}; {}", libraries_,
                              missing.empty() ? "the helper gave no answer" : missing, kHowToInstall);
  }
  helper_ = *std::move(helper);
  return absl::OkStatus();
}

absl::StatusOr<SympyVerdict> SympyGraders::Ask(const std::string& question, absl::Duration timeout) {
  if (helper_ == nullptr) IHA_RETURN_IF_ERROR(Start());
  const absl::StatusOr<std::string> line = helper_->Exchange(question, timeout);
  if (!line.ok()) {
    helper_.reset();
    return line.status();
  }
  const Json answer = Json::parse(*line, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object() || answer.contains("error")) {
    helper_.reset();  // what ran out of memory or stack is not asked again
    return ResourceExhausted("SymPy graders: {}", answer.is_object() ? TextOf(answer, "error") : "no JSON answer");
  }
  return SympyVerdict{.extracted = TextOf(answer, "extracted"),
                      .valid = FlagOf(answer, "valid"),
                      .normal = TextOf(answer, "normal"),
                      .gold = TextOf(answer, "gold"),
                      .correct = FlagOf(answer, "correct"),
                      .reason = TerminalSafe(TextOf(answer, "reason"))};
}

absl::StatusOr<SympyVerdict> SympyGraders::Grade(std::string_view metric, GradeForm form, std::string_view gold,
                                                 std::string_view given) {
  if (!Knows(metric)) return InvalidArgument("SymPy graders: '{}' is none of theirs", metric);
  const auto question = [&](int cpu_seconds) {
    const Json json = {{"metric", metric},
                       {"form", form == GradeForm::kOutput ? "output" : "pair"},
                       {"gold", gold},
                       {"given", given},
                       {"cpu_seconds", cpu_seconds}};
    return json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  };
  const std::lock_guard lock(mutex_);
  absl::StatusOr<SympyVerdict> verdict = Ask(question(limits_.cpu_seconds), limits_.timeout);
  if (verdict.ok() || absl::IsFailedPrecondition(verdict.status())) return verdict;
  return Ask(question(limits_.cpu_seconds_alone), limits_.timeout_alone);
}

}  // namespace iha::benchmarks
