#include "benchmarks/reasoning/humaneval.h"

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

constexpr const char* kInstruct = "humaneval_instruct";
constexpr const char* kAsk =
    "Write a solution to the following problem and make sure that it passes the tests:\n```python\n";
constexpr const char* kAnswer = "Here is the completed function:\n```python\n";

std::vector<CodeMetric> Metrics(CodeExtraction extract) {
  return {{{"humaneval.pass@k",
            "runs to its end, and what a candidate could have forged is confirmed by tests in another process",
            /*pure=*/false},
           extract,
           CodeRule::kDefault,
           false},
          {{"humaneval.official.pass@k", "openai/human-eval's rule: runs to its end; suspects count", /*pure=*/false},
           extract,
           CodeRule::kDefault,
           true}};
}

BenchmarkInfo InfoOf(const std::string& name, const std::string& version, const std::string& summary,
                     const std::string& protocol) {
  BenchmarkInfo info;
  info.name = name;
  info.version = version;
  info.grader_version = "humaneval/1";
  info.summary = summary;
  info.protocol = protocol;
  info.runs_code = true;
  for (const CodeMetric& metric : Metrics(CodeExtraction::kWhole)) info.metrics.push_back(metric.info);
  info.default_metrics = {"humaneval.pass@k"};
  info.default_sampling.max_new_tokens = 1024;
  info.data_files = {kHumanEvalFile};
  return info;
}

BenchmarkInfo Completion() {
  return InfoOf("humaneval", "humaneval/1", "HumanEval: complete a Python function (164 tasks), 0-shot",
                "lm-evaluation-harness 0.4.13 task humaneval, version 1: the published prompt as it is, 5 stops, 1024 "
                "tokens; the program is prompt + completion + tests");
}

BenchmarkInfo Instruct() {
  BenchmarkInfo info = InfoOf(
      kInstruct, "humaneval_instruct/4", "HumanEval as an instruction, for chat models",
      "lm-evaluation-harness 0.4.13 task humaneval_instruct, version 4: the prompt in a fenced block, and again as the "
      "beginning of the answer; the program is prompt + extracted code + tests");
  info.options = {{"extract", "fence",
                   "fence: the block that the prompt opened, or one that the model opened itself; first_fence: all "
                   "before the first ``` (that task's own rule)"},
                  {"prompt", "chat", "chat: a user turn and the beginning of the answer; plain: one text"},
                  {"system", "", "system instruction; plain puts it in front without a separator, as lm_eval does"},
                  TemplateDateOption()};
  return info;
}

Prompt RenderInstruct(const HumanEvalProblem& problem, const BenchmarkRef& ref, bool chat) {
  const std::string question = kAsk + problem.prompt + "\n```\n";
  const std::string answer = kAnswer + problem.prompt + "\n";
  const std::string& system = ref.options.at("system");
  Prompt prompt;
  if (!chat) {
    prompt.text = system + question + answer;
    return prompt;
  }
  prompt.template_date = ref.options.at(kTemplateDateOption);
  if (!system.empty()) prompt.messages.push_back({"system", system});
  prompt.messages.push_back({"user", question});
  prompt.messages.push_back({"assistant", answer});
  return prompt;
}

}  // namespace

std::vector<BenchmarkInfo> HumanEvalFamily() { return {Completion(), Instruct()}; }

absl::StatusOr<std::unique_ptr<const Benchmark>> OpenHumanEval(const BenchmarkRef& ref, const std::string& data_root,
                                                               std::shared_ptr<Graders> graders) {
  const bool instruct = ref.name == kInstruct;
  CodeProtocol protocol;
  protocol.info = instruct ? Instruct() : Completion();
  IHA_ASSIGN_OR_RETURN(protocol.ref, WithDefaults(protocol.info, ref));
  bool chat = false;
  CodeExtraction extract = CodeExtraction::kWhole;
  if (instruct) {
    IHA_ASSIGN_OR_RETURN(const std::string form, ChoiceOption(protocol.ref, "prompt", {"plain", "chat"}));
    IHA_ASSIGN_OR_RETURN(const std::string rule, ChoiceOption(protocol.ref, "extract", {"fence", "first_fence"}));
    IHA_RETURN_IF_ERROR(DayOption(protocol.ref, kTemplateDateOption).status());
    chat = form == "chat";
    extract = rule == "fence" ? CodeExtraction::kFence : CodeExtraction::kFirstFence;
  }
  protocol.metrics = Metrics(extract);
  IHA_ASSIGN_OR_RETURN(std::vector<HumanEvalProblem> problems, ReadHumanEval(data_root));
  for (const HumanEvalProblem& problem : problems) {
    // In the instruct form the answer goes on behind one more newline.
    const std::string head = instruct ? problem.prompt + "\n" : problem.prompt;
    protocol.items.push_back({problem.task_id, head, TaskOf(problem)});
  }
  protocol.data_digest = DigestOfDataFiles(protocol.info.data_files);
  protocol.render = [problems = std::move(problems), ref = protocol.ref, instruct, chat](int64_t index) {
    const HumanEvalProblem& problem = problems[static_cast<size_t>(index)];
    Prompt prompt;
    if (instruct) {
      prompt = RenderInstruct(problem, ref, chat);
    } else {
      prompt.text = problem.prompt;
    }
    prompt.stops = {"\nclass", "\ndef", "\n#", "\nif", "\nprint"};
    return prompt;
  };
  return MakeCodeBenchmark(std::move(protocol), std::move(graders));
}

}  // namespace iha::benchmarks
