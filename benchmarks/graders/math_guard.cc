#include "benchmarks/graders/math_guard.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "common/errors.h"
#include "common/module_path.h"
#include "common/status_macros.h"

namespace iha::benchmarks {
namespace {

using scoring::AnswerMetric;
using scoring::Equality;
using scoring::Verdict;

constexpr rlim_t kCpuSeconds = 2;
constexpr rlim_t kHeapBytes = rlim_t{64} << 20;

// Lines are words of lower-case hex digits, each behind an "x" so that none is empty: any bytes pass unchanged.
std::string Hex(std::string_view bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text = "x";
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

std::optional<std::string> Unhex(std::string_view text) {
  if (text.empty() || text.front() != 'x' || text.size() % 2 == 0) return std::nullopt;
  std::string bytes;
  for (size_t i = 1; i < text.size(); i += 2) {
    int value = 0;
    for (const char c : text.substr(i, 2)) {
      if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return std::nullopt;
      value = value * 16 + (c <= '9' ? c - '0' : c - 'a' + 10);
    }
    bytes += static_cast<char>(value);
  }
  return bytes;
}

// nullopt when a word is not of this form.
std::optional<std::vector<std::string>> Words(std::string_view line) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find(' ', begin), line.size());
    const std::optional<std::string> word = Unhex(line.substr(begin, end - begin));
    if (!word.has_value()) return std::nullopt;
    words.push_back(*word);
    begin = end + 1;
  }
  return words;
}

std::string Line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + Hex(word);
  return line;
}

std::string Flag(bool value) { return value ? "1" : "0"; }

// Of `resource`, if what the process was started with allows as much, else that.
bool Limit(__rlimit_resource resource, rlim_t value) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return false;
  limit.rlim_cur = std::min(value, limit.rlim_max);  // infinity is the largest of all
  return setrlimit(resource, &limit) == 0;
}

// The limit is on the process' whole life, so it moves with each question.
bool AllowOneQuestion() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const rlim_t spent = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + 1;  // begun seconds count
  return Limit(RLIMIT_CPU, spent + kCpuSeconds);
}

std::string Answer(const AnswerMetric& metric, const std::vector<std::string>& words) {
  if (words[0] == "equal") {
    const Equality equality = metric.equal(words[1], words[2]);
    return Line({Flag(equality.equal), equality.reason});
  }
  const absl::StatusOr<Verdict> verdict = metric.judge(words[1], words[2]);
  if (!verdict.ok()) return "";
  return Line({verdict->extraction.text, Flag(verdict->extraction.valid), verdict->extraction.rule,
               Flag(verdict->correct), verdict->reason});
}

}  // namespace

int RunMathGuard() {
  const AnswerMetric& metric = *scoring::FindAnswerMetric(kGuardedMetric);
  if (!Limit(RLIMIT_DATA, kHeapBytes)) return kExitInternal;
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto words = Words(line);
    if (!words.has_value() || words->size() != 3 || !AllowOneQuestion()) return kExitBadInput;
    std::cout << Answer(metric, *words) << std::endl;
  }
  return kExitOk;
}

absl::StatusOr<std::string> FindMathGuard() {
  std::string path = ProgramFolder() + "/" + kMathGuardProgram;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) return path;
  return Unavailable("{}: not found; it grades {} and belongs beside the other programs (./dev build)", path,
                     kGuardedMetric);
}

absl::StatusOr<std::string> MathGuard::AskOnce(const std::string& question, absl::Duration timeout) {
  if (helper_ == nullptr) {
    ChildOptions options;
    options.argv = {program_};
    options.limits = {{RLIMIT_CORE, 0}};
    IHA_ASSIGN_OR_RETURN(helper_, LineHelper::Start(options));
  }
  absl::StatusOr<std::string> line = helper_->Exchange(question, timeout);
  if (!line.ok()) helper_.reset();
  return line;
}

absl::StatusOr<std::string> MathGuard::Ask(const std::string& question) {
  const std::lock_guard lock(mutex_);
  absl::StatusOr<std::string> line = AskOnce(question, timeout_);
  if (line.ok() || absl::IsNotFound(line.status())) return line;
  helper_.reset();
  line = AskOnce(question, 3 * timeout_);
  if (line.ok()) return line;
  return ResourceExhausted("math.robust: {}", std::string(line.status().message()));
}

absl::StatusOr<Verdict> MathGuard::Judge(std::string_view gold, std::string_view output) {
  IHA_ASSIGN_OR_RETURN(const std::string line, Ask(Line({"judge", std::string(gold), std::string(output)})));
  const auto words = Words(line);
  if (!words.has_value() || words->size() != 5) return Internal("{}: not an answer", program_);
  return Verdict{.extraction = {words->at(0), words->at(1) == "1", words->at(2)},
                 .correct = words->at(3) == "1",
                 .reason = words->at(4)};
}

absl::StatusOr<Equality> MathGuard::Equal(std::string_view a, std::string_view b) {
  IHA_ASSIGN_OR_RETURN(const std::string line, Ask(Line({"equal", std::string(a), std::string(b)})));
  const auto words = Words(line);
  if (!words.has_value() || words->size() != 2) return Internal("{}: not an answer", program_);
  return Equality{words->at(0) == "1", words->at(1)};
}

}  // namespace iha::benchmarks
