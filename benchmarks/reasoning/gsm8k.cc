#include "benchmarks/reasoning/gsm8k.h"

#include <utility>

#include "benchmarks/manifest.h"
#include "benchmarks/reasoning/demo_problems.h"
#include "benchmarks/reasoning/problem_pool.h"
#include "benchmarks/reasoning/word_problems.h"
#include "common/canonical.h"
#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::benchmarks {
namespace {

constexpr const char* kTest = "gsm8k/test.jsonl";
constexpr const char* kTrain = "gsm8k/train.jsonl";
constexpr const char* kGraderVersion = "gsm8k/1";
constexpr int32_t kMaxNewTokens = 256;  // max_gen_toks is not set in these tasks, so that tool's default applies

struct ExemplarFile {
  std::string path;  // "" = none
  ProblemFields fields;
};

struct Variant {
  WordProblemProtocol protocol;
  ExemplarFile exemplars;
};

BenchmarkInfo InfoOf(const std::string& name, const std::string& version, const std::string& summary,
                     const std::string& protocol, const std::string& fewshot, const std::vector<std::string>& metrics) {
  BenchmarkInfo info;
  info.name = name;
  info.version = version;
  info.grader_version = kGraderVersion;
  info.summary = summary;
  info.protocol = protocol;
  info.options = WordProblemOptions(fewshot);
  info.metrics = MetricsNamed(metrics);
  info.default_metrics = metrics;
  info.default_sampling.max_new_tokens = kMaxNewTokens;
  return info;
}

Variant Gsm8k() {
  Variant v;
  v.protocol.info =
      InfoOf("gsm8k", "gsm8k/3", "grade school math word problems, 5-shot (1319 test items)",
             "lm-evaluation-harness 0.4.13 task gsm8k, version 3: raw train answers as exemplars "
             "(default: the first 5 train rows; exemplars=lm_eval is that tool's draw), greedy, 256 tokens",
             "5", {"gsm8k.strict_match", "gsm8k.flexible_extract", "gsm8k.robust"});
  v.protocol.info.data_files = {kTest, kTrain};
  v.protocol.before_question = "Question: ";
  v.protocol.after_question = "\nAnswer:";
  v.protocol.target_delimiter = " ";
  v.protocol.stops = {"Question:", "</s>", "<|im_end|>"};
  v.exemplars = {kTrain, {"question", "answer"}};
  return v;
}

Variant Gsm8kCot() {
  Variant v;
  v.protocol.info =
      InfoOf("gsm8k_cot", "gsm8k_cot/3", "GSM8K with the 8 chain-of-thought exemplars of Wei et al.",
             "lm-evaluation-harness 0.4.13 task gsm8k_cot, version 3: 8 fixed exemplars, 'The answer is N.'", "8",
             {"gsm8k_cot.strict_match", "gsm8k_cot.flexible_extract", "gsm8k.robust"});
  v.exemplars = {"exemplars/gsm8k_cot.jsonl", {"question", "target"}};
  v.protocol.info.data_files = {kTest, v.exemplars.path};
  v.protocol.before_question = "Q: ";
  v.protocol.after_question = "\nA:";
  v.protocol.target_delimiter = " ";
  v.protocol.stops = {"Q:", "</s>", "<|im_end|>"};
  v.protocol.gold_is_final_part = true;
  return v;
}

Variant Gsm8kCotLlama() {
  Variant v;
  v.protocol.info =
      InfoOf("gsm8k_cot_llama", "gsm8k_cot_llama/4", "GSM8K as the Llama models are evaluated, meant for prompt=chat",
             "lm-evaluation-harness 0.4.13 task gsm8k_cot_llama, version 4: 8 fixed exemplars, 'The final answer is N'",
             "8", {"gsm8k_cot_llama.strict_match", "gsm8k_cot_llama.flexible_extract", "gsm8k.robust"});
  v.exemplars = {"exemplars/gsm8k_cot_llama.jsonl", {"question", "target"}};
  v.protocol.info.data_files = {kTest, v.exemplars.path};
  v.protocol.before_question = "Given the following problem, reason and give a final answer to the problem.\nProblem: ";
  v.protocol.after_question =
      "\nYour response should end with \"The final answer is [answer]\" where [answer] is the response to the "
      "problem.\n";
  v.protocol.target_delimiter = "";  // the question block already ends in a newline
  v.protocol.stops = {"<|eot_id|>", "<|start_header_id|>user<|end_header_id|>", "Q:", "</s>", "<|im_end|>"};
  v.protocol.gold_is_final_part = true;
  return v;
}

Variant Gsm8kCotZeroshot() {
  Variant v;
  v.protocol.info = InfoOf("gsm8k_cot_zeroshot", "gsm8k_cot_zeroshot/3", "GSM8K, 0-shot, \"Let's think step by step.\"",
                           "lm-evaluation-harness 0.4.13 task gsm8k_cot_zeroshot, version 3", "0",
                           {"gsm8k_cot.strict_match", "gsm8k_cot.flexible_extract", "gsm8k.robust"});
  v.protocol.info.data_files = {kTest};
  v.protocol.before_question = "Q: ";
  v.protocol.after_question = "\nA: Let's think step by step.";
  v.protocol.stops = {"Q:", "</s>", "<|im_end|>"};
  return v;
}

Variant Gsm8kDemo() {
  Variant v = Gsm8k();
  BenchmarkInfo& info = v.protocol.info;
  info.name = "gsm8k_demo";
  info.version = "gsm8k_demo/1";
  info.summary = "24 bundled one-step word problems in gsm8k's form; shows the tool, measures nothing";
  info.protocol = "gsm8k's prompt and metrics over problems and exemplars that come with iha-eval";
  info.data_files.clear();
  v.exemplars = {};
  return v;
}

std::vector<Variant> Variants() { return {Gsm8k(), Gsm8kCot(), Gsm8kCotLlama(), Gsm8kCotZeroshot(), Gsm8kDemo()}; }

Digest DemoDigest() {
  CanonicalWriter writer("iha.demo", 1);
  for (const auto& set : {DemoProblems(), DemoExemplars()}) {
    writer.List(set.size());
    for (const BundledProblem& problem : set) writer.String(problem.question).String(problem.answer);
  }
  return writer.Hash();
}

absl::StatusOr<std::unique_ptr<const Benchmark>> OpenVariant(Variant variant, const BenchmarkRef& ref,
                                                             const std::string& data_root,
                                                             std::shared_ptr<Graders> graders) {
  const std::vector<std::string> files = variant.protocol.info.data_files;
  if (files.empty()) {
    return MakeWordProblemBenchmark(std::move(variant.protocol), ref, BundledPool(DemoProblems()),
                                    BundledPool(DemoExemplars()), DemoDigest(), std::move(graders));
  }
  IHA_ASSIGN_OR_RETURN(std::string test, ReadDataFile(data_root, kTest));
  std::unique_ptr<const ProblemPool> exemplars;
  if (!variant.exemplars.path.empty()) {
    IHA_ASSIGN_OR_RETURN(std::string bytes, ReadDataFile(data_root, variant.exemplars.path));
    exemplars = JsonLinesPool(std::move(bytes), variant.exemplars.fields);
  }
  return MakeWordProblemBenchmark(std::move(variant.protocol), ref,
                                  JsonLinesPool(std::move(test), {"question", "answer"}), std::move(exemplars),
                                  DigestOfDataFiles(files), std::move(graders));
}

}  // namespace

std::vector<BenchmarkInfo> Gsm8kFamily() {
  std::vector<BenchmarkInfo> infos;
  for (Variant& variant : Variants()) infos.push_back(std::move(variant.protocol.info));
  return infos;
}

absl::StatusOr<std::unique_ptr<const Benchmark>> OpenGsm8k(const BenchmarkRef& ref, const std::string& data_root,
                                                           std::shared_ptr<Graders> graders) {
  for (Variant& variant : Variants()) {
    if (variant.protocol.info.name == ref.name)
      return OpenVariant(std::move(variant), ref, data_root, std::move(graders));
  }
  return Internal("'{}' is not of the gsm8k family", ref.name);
}

}  // namespace iha::benchmarks
