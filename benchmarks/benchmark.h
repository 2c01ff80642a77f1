// benchmark.h: a benchmark = data, prompts and graders, as pure functions of an item's index.
//
// A Benchmark is immutable after Open and thread-safe. The planner asks it for sizes and digests, the worker for
// prompts, grades and item values, the coordinator re-runs Grade (pure graders only). Rendering never looks at the
// model except for chat forms, which need the checkpoint's template: the caller renders `messages` with it.
// Errors: InvalidArgument for bad options (names the option, lists the known ones), NotFound / DataLoss for missing or
// changed data files (file, found and expected digest, how to import).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/digest.h"
#include "common/eval_types.h"

namespace iha::benchmarks {

struct Message {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

// What the model is shown for one item.
struct Prompt {
  std::string text;                // plain form: exact bytes; the tokenizer's own special tokens are added (BOS if any)
  std::vector<Message> messages;   // chat form: when not empty, `text` is unused
  std::vector<std::string> stops;  // generation is cut before the first of these
};

struct MetricInfo {
  std::string name;         // "gsm8k.strict_match"
  std::string description;  // whose rule, one line
};

struct OptionInfo {
  std::string name;
  std::string default_value;
  std::string description;  // with the allowed values
};

struct BenchmarkInfo {
  std::string name;
  std::string version;         // changes when a prompt byte may change
  std::string grader_version;  // changes when a verdict may change
  std::string summary;         // one line
  std::string protocol;        // what exactly is reproduced, and from which tool and version
  std::vector<OptionInfo> options;
  std::vector<MetricInfo> metrics;           // base metrics that Grade returns, in order
  std::vector<std::string> default_metrics;  // for k = 1; k > 1 adds maj@k of the first
  SamplingParams default_sampling;
  std::vector<std::string> data_files;  // below the data root; empty = bundled
};

class Benchmark {
 public:
  virtual ~Benchmark() = default;
  virtual const BenchmarkInfo& info() const = 0;
  virtual const BenchmarkRef& ref() const = 0;  // options filled in with their defaults
  virtual int64_t size() const = 0;
  virtual std::string ItemId(int64_t index) const = 0;
  virtual Prompt Render(int64_t index) const = 0;
  // One grade for each of info().metrics, in order. `text` is the stored generation text, raw.
  virtual std::vector<SampleGrade> Grade(int64_t index, const std::string& text) const = 0;
  // Reference answer, for `explain` and samples.jsonl.
  virtual std::string Gold(int64_t index) const = 0;
  virtual Digest data_digest() const = 0;
};

// Every benchmark there is, in listing order (explicit list; no static registration).
std::vector<BenchmarkInfo> ListBenchmarks();

// `data_root` may be "" when the benchmark is bundled. NotFound suggests the nearest name.
absl::StatusOr<std::unique_ptr<const Benchmark>> OpenBenchmark(const BenchmarkRef& ref, const std::string& data_root);

// "gsm8k?fewshot=8&prompt=chat"; InvalidArgument names the bad part.
absl::StatusOr<BenchmarkRef> ParseBenchmarkRef(const std::string& spec);
std::string ToString(const BenchmarkRef& ref);

// Digest of all prompts, stops and options of the first `items` items: two runs are comparable only if it is equal.
Digest PromptDigest(const Benchmark& benchmark, int64_t items);

// The item's values for `metrics` (SweepEntry::metrics) from its samples' grades: mean over samples for a base metric,
// vote for maj@k, pass@k. Pure; the coordinator recomputes it (INV-RES-3). InvalidArgument for an unknown metric.
absl::StatusOr<std::vector<ItemValue>> ItemValues(const std::vector<std::string>& metrics,
                                                  const std::vector<std::vector<SampleGrade>>& grades);
// Checks metric names against a benchmark and sample count before a sweep is stored; k > samples is allowed and gives
// kUndefined cells. Fills in defaults when `metrics` is empty.
absl::StatusOr<std::vector<std::string>> ResolveMetrics(const BenchmarkInfo& info, const SamplingParams& sampling,
                                                        const std::vector<std::string>& metrics);

}  // namespace iha::benchmarks
