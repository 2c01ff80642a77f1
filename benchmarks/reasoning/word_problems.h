// word_problems.h: benchmarks of the form "question, then free text with an answer": GSM8K, MATH-500, their variants.
//
// One class, one value of WordProblemProtocol for each variant: what differs between them is text. Prompts are byte for
// byte those of lm-evaluation-harness 0.4.13 for equal options (tests: its own prompts). Immutable, thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/benchmark.h"
#include "benchmarks/reasoning/problem_pool.h"

namespace iha::benchmarks {

struct WordProblemProtocol {
  BenchmarkInfo info;
  std::string before_question;   // "Question: "
  std::string after_question;    // "\nAnswer:"
  std::string target_delimiter;  // between question and exemplar answer, plain and single-turn forms only
  std::vector<std::string> stops;
  bool exemplars_are_items = false;  // the pool is the test set itself: only exemplars=lm_eval may show an item itself
  std::string solution_metric;       // takes its gold answer out of the whole solution, as its tool does
  bool gold_is_final_part = false;  // the reference is the text behind the last "####", stripped; else the whole answer
};

// The options that every word-problem benchmark has; fewshot and prompt with the given defaults.
std::vector<OptionInfo> WordProblemOptions(const std::string& default_fewshot,
                                           const std::string& default_prompt = "plain");

// Of Graders::List.
std::vector<MetricInfo> MetricsNamed(const std::vector<std::string>& names);

// `exemplars` may be null: no few-shot examples then. `data_digest` is that of everything in the two pools.
// InvalidArgument for a bad option.
absl::StatusOr<std::unique_ptr<const Benchmark>> MakeWordProblemBenchmark(
    WordProblemProtocol protocol, const BenchmarkRef& ref, std::unique_ptr<const ProblemPool> problems,
    std::unique_ptr<const ProblemPool> exemplars, const Digest& data_digest, std::shared_ptr<Graders> graders);

}  // namespace iha::benchmarks
