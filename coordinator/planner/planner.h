// planner.h: SweepSpec -> jobs (table cells) -> shards (ranges of whole items). Pure but for opening benchmarks.
//
// Everything that can be known to be wrong before a model is there is refused here: InvalidArgument names the field,
// what was found and what is expected; NotFound / DataLoss come from opening a benchmark (unknown name, data absent or
// changed). Thread: any. Blocking: reads benchmark data, renders every prompt once for each entry.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/benchmark.h"
#include "common/eval_types.h"
#include "coordinator/store/records.h"

namespace iha::coordinator {

// benchmarks::OpenBenchmark with the data root bound; tests give their own.
using BenchmarkOpener =
    std::function<absl::StatusOr<std::unique_ptr<const benchmarks::Benchmark>>(const BenchmarkRef&)>;

struct SweepPlan {
  SweepId id;
  SweepSpec spec;            // normalized
  std::vector<NewJob> jobs;  // model-major: jobs[m * entries + e]
};

// Fills in every default (options, metrics; a limit past the end becomes none; digests lower case) and validates, so
// that equal requests have one id. Idempotent.
absl::StatusOr<SweepSpec> NormalizeSpec(const SweepSpec& spec, const BenchmarkOpener& open);

// Normalizes and plans.
absl::StatusOr<SweepPlan> Plan(const SweepSpec& spec, const BenchmarkOpener& open);

// Estimated tokens of one item: prompt bytes / 3 + samples x max_new_tokens; with choices, those of prompt and choice,
// added up. The coordinator has no tokenizer.
int64_t EstimateTokens(const benchmarks::Prompt& prompt, const SamplingParams& sampling);

// Cuts items 0..n-1 into ranges of whole items of at most `shard_tokens` each; an item larger than that stands alone.
std::vector<NewShard> CutShards(const std::vector<int64_t>& item_tokens, int64_t shard_tokens);

// A model's path below the models root: relative, no empty, "." or ".." components, at most 512 bytes, nothing
// that TerminalSafe would escape. InvalidArgument says which.
absl::Status ValidateModelName(const std::string& name);

}  // namespace iha::coordinator
