// word_problems.h: benchmarks of the form "question, then free text, then a number": GSM8K and its variants.
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
  bool gold_is_final_part = false;  // the reference is the text behind the last "####", stripped; else the whole answer
};

// The options that every word-problem benchmark has; fewshot and exemplars with the given defaults.
std::vector<OptionInfo> WordProblemOptions(const std::string& default_fewshot);

// `exemplars` may be null: no few-shot examples then. `data_digest` is that of everything in the two pools.
// InvalidArgument for a bad option.
absl::StatusOr<std::unique_ptr<const Benchmark>> MakeWordProblemBenchmark(WordProblemProtocol protocol,
                                                                          const BenchmarkRef& ref,
                                                                          std::unique_ptr<const ProblemPool> problems,
                                                                          std::unique_ptr<const ProblemPool> exemplars,
                                                                          const Digest& data_digest);

}  // namespace iha::benchmarks
