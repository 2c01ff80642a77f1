// code_benchmark.h: benchmarks whose answers are programs: HumanEval, MBPP, their variants.
//
// What differs between variants is text and rules (CodeProtocol). Grading needs a CodeJudge (graders/code_judge.h)
// among the Graders; without one every grade is unscored, "grader unavailable". Immutable, thread-safe; Grade blocks as
// the judge does, and judges the samples of an item at the same time where the judge can.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/benchmark.h"
#include "benchmarks/graders/code_judge.h"
#include "benchmarks/scoring/extract_code.h"

namespace iha::benchmarks {

struct CodeItem {
  std::string id;
  std::string head;  // what stands before the extracted code in a program: a prompt that it continues
  CodeTask task;
};

// How a metric reads a text and judges what it read.
struct CodeMetric {
  MetricInfo info;
  scoring::CodeExtraction extract = scoring::CodeExtraction::kWhole;
  CodeRule rule = CodeRule::kDefault;
  bool counts_suspects = false;  // as upstream does
};

struct CodeProtocol {
  BenchmarkInfo info;  // runs_code; its metrics are those below, in order
  std::vector<CodeMetric> metrics;
  BenchmarkRef ref;  // options filled in
  std::vector<CodeItem> items;
  std::function<Prompt(int64_t index)> render;
  Digest data_digest;
};

std::unique_ptr<const Benchmark> MakeCodeBenchmark(CodeProtocol protocol, std::shared_ptr<Graders> graders);

}  // namespace iha::benchmarks
