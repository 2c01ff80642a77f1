#include "benchmarks/reasoning/math500.h"

#include <utility>

#include "benchmarks/manifest.h"
#include "benchmarks/reasoning/problem_pool.h"
#include "benchmarks/reasoning/word_problems.h"
#include "benchmarks/scoring/math/math_robust.h"
#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::benchmarks {
namespace {

constexpr const char* kTest = "math500/test.jsonl";
constexpr const char* kMinervaExemplars = "exemplars/minerva_math.jsonl";
constexpr int32_t kLmEvalNewTokens = 256;  // max_gen_toks is not set in these tasks, so that tool's default applies
constexpr int32_t kBoxedNewTokens = 2048;

// What the forms share. `metric`: the one that the form's own tool grades by, beside ours.
WordProblemProtocol ProtocolOf(const std::string& name, const std::string& summary, const std::string& protocol,
                               const std::string& metric) {
  WordProblemProtocol p;
  p.info.name = name;
  p.info.version = name + "/1";
  p.info.grader_version = fmt::format("math500/1+{}", scoring::kMathRobustVersion);
  p.info.summary = summary;
  p.info.protocol = protocol;
  p.info.metrics = MetricsNamed({"math.robust", "math.minerva", "math.hendrycks", "math.prm800k"});
  p.info.default_metrics = {"math.robust", metric};
  p.info.data_files = {kTest};
  p.solution_metric = "math.minerva";
  return p;
}

// The tasks of lm-evaluation-harness differ in their words.
WordProblemProtocol LmEvalForm(WordProblemProtocol p, const std::string& before, const std::string& after,
                               const std::string& fewshot) {
  p.info.default_sampling.max_new_tokens = kLmEvalNewTokens;
  p.info.options = WordProblemOptions(fewshot);
  p.before_question = before;
  p.after_question = after;
  p.target_delimiter = " ";
  p.stops = {"Problem:"};
  return p;
}

WordProblemProtocol Minerva() {
  WordProblemProtocol p = LmEvalForm(
      ProtocolOf(
          "math500", "MATH-500, 4-shot with the exemplars of Minerva (500 items)",
          "lm-evaluation-harness 0.4.13 task minerva_math500, version 3.1: 4 fixed exemplars, 'Final Answer: The "
          "final answer is ...', greedy, 256 tokens",
          "math.minerva"),
      "Problem:\n", "\n\nSolution:", "4");
  p.info.data_files.emplace_back(kMinervaExemplars);
  return p;
}

WordProblemProtocol Hendrycks() {
  WordProblemProtocol p = LmEvalForm(
      ProtocolOf("math500_hendrycks", "MATH-500 in the form of Hendrycks et al., 0-shot",
                 "lm-evaluation-harness 0.4.13 task hendrycks_math500, version 1: bare answers; exemplars, if asked "
                 "for, come from the test set itself (exemplars=lm_eval may show an item itself, as that tool does)",
                 "math.hendrycks"),
      "Problem: ", "\nAnswer:", "0");
  p.exemplars_are_items = true;
  return p;
}

WordProblemProtocol BoxedChat() {
  WordProblemProtocol p =
      ProtocolOf("math500_boxed", "MATH-500, 0-shot chat, the answer in \\boxed{}",
                 "one user turn: the problem, a newline, 'Please reason step by step, and put your final answer within "
                 "\\boxed{}.'; ends at eos; 2048 tokens",
                 "math.prm800k");
  p.info.default_sampling.max_new_tokens = kBoxedNewTokens;
  p.info.options = WordProblemOptions("0", "chat");
  p.after_question = "\nPlease reason step by step, and put your final answer within \\boxed{}.";
  return p;
}

std::vector<WordProblemProtocol> Protocols() { return {Minerva(), Hendrycks(), BoxedChat()}; }

absl::StatusOr<std::unique_ptr<const Benchmark>> OpenProtocol(WordProblemProtocol protocol, const BenchmarkRef& ref,
                                                              const std::string& data_root,
                                                              std::shared_ptr<Graders> graders) {
  const ProblemFields fields{"problem", "answer", "solution", "unique_id"};
  IHA_ASSIGN_OR_RETURN(std::string test, ReadDataFile(data_root, kTest));
  std::unique_ptr<const ProblemPool> exemplars;
  if (protocol.exemplars_are_items) {
    exemplars = JsonLinesPool(test, fields);
  } else if (protocol.info.data_files.size() > 1) {
    IHA_ASSIGN_OR_RETURN(std::string bytes, ReadDataFile(data_root, kMinervaExemplars));
    exemplars = JsonLinesPool(std::move(bytes), {"problem", "solution"});
  }
  const Digest digest = DigestOfDataFiles(protocol.info.data_files);
  return MakeWordProblemBenchmark(std::move(protocol), ref, JsonLinesPool(std::move(test), fields),
                                  std::move(exemplars), digest, std::move(graders));
}

}  // namespace

std::vector<BenchmarkInfo> Math500Family() {
  std::vector<BenchmarkInfo> infos;
  for (WordProblemProtocol& protocol : Protocols()) infos.push_back(std::move(protocol.info));
  return infos;
}

absl::StatusOr<std::unique_ptr<const Benchmark>> OpenMath500(const BenchmarkRef& ref, const std::string& data_root,
                                                             std::shared_ptr<Graders> graders) {
  for (WordProblemProtocol& protocol : Protocols()) {
    if (protocol.info.name == ref.name) return OpenProtocol(std::move(protocol), ref, data_root, std::move(graders));
  }
  return Internal("'{}' is not of the math500 family", ref.name);
}

}  // namespace iha::benchmarks
