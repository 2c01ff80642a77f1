#include "benchmarks/reasoning/mbpp.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "benchmarks/manifest.h"
#include "benchmarks/options.h"
#include "benchmarks/reasoning/code_benchmark.h"
#include "benchmarks/reasoning/code_data.h"
#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::benchmarks {
namespace {

using scoring::CodeExtraction;

constexpr const char* kInstruct = "mbpp_instruct";
constexpr const char* kSanitized = "mbpp_sanitized";
// The paper's exemplars; the fourth stands in for one that is the item itself (the sanitized set holds them).
constexpr std::array<int64_t, 4> kExemplars = {2, 3, 4, 6};
constexpr int64_t kMaxShots = 3;
constexpr std::pair<int64_t, int64_t> kTestIds = {11, 510};
constexpr const char* kFenceOpen = "\n```python\n";

enum class Form { kPlain, kChat, kChatSingle };

std::vector<CodeMetric> Metrics(const std::string& name) {
  const bool instruct = name == kInstruct;
  std::vector<CodeMetric> metrics = {
      {{"mbpp.pass@k", "the three tests, behind test_setup_code; confirmed where a candidate could have forged it",
        /*pure=*/false},
       instruct ? CodeExtraction::kFence : CodeExtraction::kWhole,
       CodeRule::kDefault,
       false}};
  if (name == kSanitized) return metrics;  // that tool has no such task
  metrics.push_back(
      {{"mbpp.lm_eval.pass@k", "lm-evaluation-harness 0.4.13, bug for bug: no test_setup_code, 3 s; suspects count",
        /*pure=*/false},
       instruct ? CodeExtraction::kMbppInstruct : CodeExtraction::kWhole,
       CodeRule::kLmEval,
       true});
  return metrics;
}

BenchmarkInfo InfoOf(const std::string& name, const std::string& summary, const std::string& protocol) {
  BenchmarkInfo info;
  info.name = name;
  info.version = name + "/1";
  info.grader_version = "mbpp/1";
  info.summary = summary;
  info.protocol = protocol;
  info.runs_code = true;
  for (const CodeMetric& metric : Metrics(name)) info.metrics.push_back(metric.info);
  info.default_metrics = {"mbpp.pass@k"};
  info.options = {{"fewshot", "3", "number of exemplars, 0 to 3: tasks 2, 3, 4"}};
  info.default_sampling.max_new_tokens = 256;
  info.data_files = {kMbppFile};
  return info;
}

BenchmarkInfo Plain() {
  return InfoOf("mbpp", "MBPP: short Python functions from a description and three tests, 3-shot (500 test tasks)",
                "lm-evaluation-harness 0.4.13 task mbpp, version 1: exemplars 2, 3, 4 with their own line ends, stop "
                "[DONE], 256 tokens; the program is the completion + tests");
}

BenchmarkInfo Instruct() {
  BenchmarkInfo info =
      InfoOf(kInstruct, "MBPP as an instruction, for chat models",
             "lm-evaluation-harness 0.4.13 task mbpp_instruct, version 1: answers begin with an opened "
             "fence, in the exemplars too; no stops, 256 tokens");
  info.options.push_back({"prompt", "chat", "chat: exemplars as turns; chat_single: one user turn; plain: one text"});
  info.options.push_back(
      {"system", "", "system instruction; plain puts it in front without a separator, as lm_eval does"});
  info.options.push_back(TemplateDateOption());
  return info;
}

BenchmarkInfo Sanitized() {
  BenchmarkInfo info =
      InfoOf(kSanitized, "MBPP's 427 sanitized tasks, in mbpp's form",
             "the texts, tests and test imports of sanitized-mbpp.json under the prompt of mbpp; an exemplar is never "
             "the item itself (task 6 takes its place)");
  info.data_files = {kMbppSanitizedFile, kMbppFile};
  return info;
}

std::string TestsOf(const MbppProblem& problem) {
  const size_t shown = std::min<size_t>(problem.tests.size(), 3);
  return fmt::format(
      "{}", fmt::join(problem.tests.begin(), problem.tests.begin() + static_cast<std::ptrdiff_t>(shown), "\n"));
}

std::string Question(const MbppProblem& problem, bool instruct) {
  constexpr const char* kRole = "You are an expert Python programmer, and here is your task:";
  if (instruct) {
    return fmt::format("{}\n{}\nYour code should pass these tests:\n{}", kRole, problem.text, TestsOf(problem));
  }
  return fmt::format("{} {} Your code should pass these tests:\n\n{}\n[BEGIN]\n", kRole, problem.text,
                     TestsOf(problem));
}

// All that Render needs; immutable.
struct Prompts {
  std::vector<MbppProblem> items;
  std::vector<MbppProblem> pool;  // of exemplars
  size_t shots = 0;
  bool instruct = false;
  Form form = Form::kPlain;
  std::string system;
  std::string template_date;

  std::string Answer(const MbppProblem& shot) const {
    return instruct ? kFenceOpen + shot.code + "\n```" : shot.code + "\n[DONE]";
  }

  std::vector<const MbppProblem*> Shots(const MbppProblem& item) const {
    std::vector<const MbppProblem*> chosen;
    for (const MbppProblem& shot : pool) {
      if (chosen.size() < shots && shot.task_id != item.task_id) chosen.push_back(&shot);
    }
    return chosen;
  }

  std::string Text(const MbppProblem& item) const {
    std::string text;
    for (const MbppProblem* shot : Shots(item)) text += Question(*shot, instruct) + Answer(*shot) + "\n\n";
    return text + Question(item, instruct);
  }

  Prompt Render(int64_t index) const {
    const MbppProblem& item = items[static_cast<size_t>(index)];
    Prompt prompt;
    if (!instruct) prompt.stops = {"[DONE]"};
    if (form == Form::kPlain) {
      prompt.text = system + Text(item) + (instruct ? kFenceOpen : "");
      return prompt;
    }
    prompt.template_date = template_date;
    if (!system.empty()) prompt.messages.push_back({"system", system});
    if (form == Form::kChat) {
      for (const MbppProblem* shot : Shots(item)) {
        prompt.messages.push_back({"user", Question(*shot, true)});
        prompt.messages.push_back({"assistant", Answer(*shot)});
      }
    }
    prompt.messages.push_back({"user", form == Form::kChat ? Question(item, true) : Text(item)});
    prompt.messages.push_back({"assistant", kFenceOpen});  // left open: the model goes on
    return prompt;
  }
};

absl::Status ReadOptions(const BenchmarkRef& ref, Prompts& prompts) {
  IHA_ASSIGN_OR_RETURN(const int64_t shots, IntegerOption(ref, "fewshot", 0, kMaxShots));
  prompts.shots = static_cast<size_t>(shots);
  if (!prompts.instruct) return absl::OkStatus();
  IHA_ASSIGN_OR_RETURN(const std::string form, ChoiceOption(ref, "prompt", {"plain", "chat", "chat_single"}));
  prompts.form = form == "plain" ? Form::kPlain : form == "chat" ? Form::kChat : Form::kChatSingle;
  prompts.system = ref.options.at("system");
  IHA_ASSIGN_OR_RETURN(prompts.template_date, DayOption(ref, kTemplateDateOption));
  return absl::OkStatus();
}

absl::Status ReadProblems(const std::string& data_root, bool sanitized, Prompts& prompts) {
  IHA_ASSIGN_OR_RETURN(std::vector<MbppProblem> full, ReadMbpp(data_root, MbppSet::kFull));
  for (const int64_t id : kExemplars) {
    const auto at = std::find_if(full.begin(), full.end(), [id](const MbppProblem& p) { return p.task_id == id; });
    if (at != full.end()) prompts.pool.push_back(*at);
  }
  if (sanitized) {
    IHA_ASSIGN_OR_RETURN(prompts.items, ReadMbpp(data_root, MbppSet::kSanitized));
    return absl::OkStatus();
  }
  for (MbppProblem& problem : full) {
    const bool in_test = problem.task_id >= kTestIds.first && problem.task_id <= kTestIds.second;
    if (in_test) prompts.items.push_back(std::move(problem));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<BenchmarkInfo> MbppFamily() { return {Plain(), Instruct(), Sanitized()}; }

absl::StatusOr<std::unique_ptr<const Benchmark>> OpenMbpp(const BenchmarkRef& ref, const std::string& data_root,
                                                          std::shared_ptr<Graders> graders) {
  const bool sanitized = ref.name == kSanitized;
  Prompts prompts;
  prompts.instruct = ref.name == kInstruct;
  CodeProtocol protocol;
  protocol.info = prompts.instruct ? Instruct() : sanitized ? Sanitized() : Plain();
  protocol.metrics = Metrics(ref.name);
  IHA_ASSIGN_OR_RETURN(protocol.ref, WithDefaults(protocol.info, ref));
  IHA_RETURN_IF_ERROR(ReadOptions(protocol.ref, prompts));
  IHA_RETURN_IF_ERROR(ReadProblems(data_root, sanitized, prompts));
  for (const MbppProblem& problem : prompts.items) {
    protocol.items.push_back({std::to_string(problem.task_id), "", TaskOf(problem)});
  }
  protocol.data_digest = DigestOfDataFiles(protocol.info.data_files);
  protocol.render = [prompts = std::move(prompts)](int64_t index) { return prompts.Render(index); };
  return MakeCodeBenchmark(std::move(protocol), std::move(graders));
}

}  // namespace iha::benchmarks
