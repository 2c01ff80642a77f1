// benchmark.h: a benchmark = data, prompts and graders, as pure functions of an item's index.
//
// A Benchmark is immutable after Open and thread-safe. The planner asks it for sizes and digests, the worker for
// prompts, grades and item values, the coordinator re-runs Grade (pure graders only). Rendering never looks at the
// model except for chat forms, which need the checkpoint's template: the caller renders `messages` with it.
// Only OpenBenchmark reads files (blocking; a few ms: the digests are checked); all else is pure and never blocks.
// Indices are 0 <= index < size(); another is the caller's bug.
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

namespace iha::tokenizer {
class Tokenizer;  // model/tokenizer/tokenizer.h
}

namespace iha::benchmarks {

class Graders;  // graders/graders.h

struct Message {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

// What the model is shown for one item.
struct Prompt {
  std::string text;                // plain form: exact bytes; the tokenizer's own special tokens are added (BOS if any)
  std::vector<Message> messages;   // chat form: when not empty, `text` is unused
  std::string template_date = {};  // chat form: YYYY-MM-DD, the day that the chat template sees; "" = its default
  std::vector<std::string> stops;  // generation is cut before the first of these
  // Likelihood benchmarks: nothing is drawn, each of these is scored behind `text` (plain form). No stops then.
  std::vector<std::string> choices = {};
  bool bare = false;  // plain form: `text` brings its special tokens itself, none are added
};

struct CodeSample {
  std::string candidate;  // the model's program, without the tests
  std::string program;
};

struct MetricInfo {
  std::string name;         // "gsm8k.strict_match"
  std::string description;  // whose rule, one line
  bool pure = true;         // false: needs another process, or items of a checkpoint; the coordinator takes the
                            // worker's word for it where CanBeGrade says so
};

struct OptionInfo {
  std::string name;
  std::string default_value;
  std::string description;  // with the allowed values
};

struct BenchmarkInfo {
  std::string name;
  std::string version;         // changes when a prompt byte may change
  std::string grader_version;  // changes when a grade, group or value of an item may change
  std::string summary;         // one line
  std::string protocol;        // what exactly is reproduced, and from which tool and version
  std::vector<OptionInfo> options;
  std::vector<MetricInfo> metrics;           // base metrics that Grade returns, in order
  std::vector<std::string> default_metrics;  // for k = 1; k > 1 adds maj@k (pass@k of programs) of the first
  SamplingParams default_sampling;
  std::vector<std::string> data_files;  // below the data root; empty = bundled
  // Each prompt has choices that are scored: one sample an item, its text that of scoring/choice_scores.h.
  bool likelihood = false;
  bool runs_code = false;  // its metrics run what models wrote: only a worker whose sandbox holds grades it
  // > 0: its items follow from a checkpoint's tokenizer (ForCheckpoint), each of at most so many tokens, prompt and
  // generation.
  int64_t item_tokens = 0;
};

// What a checkpoint brings to a benchmark whose items follow from it.
struct CheckpointTexts {
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  int64_t items = 0;           // those that are planned: the first so many
  std::string cache_dir = "";  // where items that were made are kept for the next run; "" = nowhere
  int threads = 1;
};

class Benchmark;

// The items of one benchmark for one checkpoint. One call at a time. Blocking: the first call makes what is not in the
// cache (seconds, at long lengths minutes).
class ItemSource {
 public:
  virtual ~ItemSource() = default;
  // The benchmark that renders and grades items begin..end-1, and may be asked for no others. Errors: those of files.
  virtual absl::StatusOr<std::unique_ptr<const Benchmark>> Items(ItemRange range) = 0;
};

class Benchmark {
 public:
  virtual ~Benchmark() = default;
  virtual const BenchmarkInfo& info() const = 0;
  virtual const BenchmarkRef& ref() const = 0;  // options filled in with their defaults
  virtual int64_t size() const = 0;
  virtual std::string ItemId(int64_t index) const = 0;
  virtual Prompt Render(int64_t index) const = 0;
  // Grades of one item: for each sample one grade for each of `metrics` (some of info().metrics, in that order).
  // `texts` are the stored generation texts of all its samples, raw. What a metric can't judge is a grade with
  // `unscored` set and the reason, never a wrong answer. Impure metrics may block on their child process.
  virtual std::vector<std::vector<SampleGrade>> Grade(int64_t index, const std::vector<std::string>& texts,
                                                      const std::vector<MetricInfo>& metrics) const = 0;
  // Of a metric that is not pure: whether a grade that was made elsewhere can be that of `text`, by what it says
  // itself.
  virtual bool CanBeGrade(const std::string&, const SampleGrade&) const { return true; }
  // Reference answer, for `explain` and samples.jsonl.
  virtual std::string Gold(int64_t index) const = 0;
  virtual Digest data_digest() const = 0;
  // What the first metric judges of a text, and the whole program that it runs; both "" where texts are no programs.
  virtual CodeSample Code(int64_t, const std::string&) const { return {}; }
  // Where info().item_tokens > 0 what was opened renders nothing and grades nothing (kGraderUnavailable): this gives
  // the items, and null for all other benchmarks. InvalidArgument: the checkpoint cannot have them; says why.
  virtual absl::StatusOr<std::unique_ptr<ItemSource>> ForCheckpoint(const CheckpointTexts&) const { return nullptr; }
  // Why item `index` of an ItemSource is not there: such an item is unscored for this reason. kScored: it is there.
  virtual Unscored Missing(int64_t) const { return Unscored::kScored; }
};

// Every benchmark there is, in listing order (explicit list; no static registration); "jsonl:FILE" stands for all
// files.
std::vector<BenchmarkInfo> ListBenchmarks();
// What a spec's name stands for. NotFound: an unknown name (suggests the nearest).
absl::StatusOr<BenchmarkInfo> FindBenchmark(const std::string& name);

// `data_root` may be "" when the benchmark is bundled; `graders` null: none that need another process. NotFound: an
// unknown name (suggests the nearest) or a missing data file; DataLoss: a changed one; InvalidArgument: a bad option.
absl::StatusOr<std::unique_ptr<const Benchmark>> OpenBenchmark(const BenchmarkRef& ref, const std::string& data_root,
                                                               std::shared_ptr<Graders> graders = nullptr);

// "gsm8k?fewshot=8&prompt=chat"; InvalidArgument names the bad part. In values %XX stands for a byte, so that they can
// hold "&", "%" and spaces; ToString writes options in key order and escapes all but letters, digits and "-_.,:@/".
// The name and the options are not checked here: OpenBenchmark does.
absl::StatusOr<BenchmarkRef> ParseBenchmarkRef(const std::string& spec);
std::string ToString(const BenchmarkRef& ref);

// The benchmarks that `ref` stands for, one for each table cell: itself, but "ruler@4096,8192" is 26. InvalidArgument:
// the name's list is wrong (says where). Unknown names are left for OpenBenchmark.
absl::StatusOr<std::vector<BenchmarkRef>> ExpandBenchmark(const BenchmarkRef& ref);

// InvalidArgument: the benchmark's items are longer than a context of so many tokens, and its options don't say that
// they are to be run all the same. NotFound: an unknown benchmark.
absl::Status CheckContext(const BenchmarkRef& ref, const std::string& model, int64_t context_tokens);

// A spec may carry sampling settings too: "gsm8k?samples=5&temperature=0.6". Moves samples, temperature, top_p, top_k,
// seed and max_new_tokens from `ref`'s options to `sampling`; the rest stays. InvalidArgument: a value that is no
// number of the setting's range.
absl::Status TakeSampling(BenchmarkRef& ref, SamplingParams& sampling);

// Digest of all prompts, stops and options of the first `items` items: two runs are comparable only if it is equal.
// Where items follow from the checkpoint's tokenizer, of options and version: with the tokenizer's digest and the
// data's they decide every prompt.
Digest PromptDigest(const Benchmark& benchmark, int64_t items);

// The item's values for `metrics` (as ResolveMetrics gives them), in that order, from its samples' grades (one vector a
// sample, in sample order, at least one): mean over samples for a base metric, Maj@k, pass@k (scoring/vote.h). A sample
// that a metric could not score makes the item's value unscored, for its reason; k > samples gives kUndefined. Pure;
// the coordinator recomputes it (INV-RES-3). InvalidArgument: no samples, or a metric that the samples have no grade
// of.
absl::StatusOr<std::vector<ItemValue>> ItemValues(const std::vector<std::string>& metrics,
                                                  const std::vector<std::vector<SampleGrade>>& grades);

// Of entry.metrics. Where it stops settled votes, fewer `grades` than samples give a settled vote the value that all
// would give; its winner, tie and invalid are of those there are.
absl::StatusOr<std::vector<ItemValue>> EntryValues(const SweepEntry& entry,
                                                   const std::vector<std::vector<SampleGrade>>& grades);
// How many samples an item takes, as the grades of its first ones tell: all; where it stops settled votes, the fewest
// after which they may be settled (at most grades.size(): they are), all if one of those has no score.
absl::StatusOr<int64_t> SamplesWanted(const SweepEntry& entry, const std::vector<std::vector<SampleGrade>>& grades);
absl::Status CheckVotesOnly(const SweepEntry& entry);  // InvalidArgument: it may not stop, some metric needs all

// What one of `metrics` (as ResolveMetrics gives them) takes: the base metric, and the samples without which it is
// undefined.
struct MetricNeeds {
  std::string base;
  int64_t samples = 1;
};
absl::StatusOr<MetricNeeds> NeedsOf(const std::string& metric);

// What Grade is asked for so that ItemValues has all it needs for `metrics`.
std::vector<MetricInfo> BaseMetrics(const BenchmarkInfo& info, const std::vector<std::string>& metrics);

// Checks metric names against a benchmark and gives their full form: "maj@5" becomes "maj@5?metric=NAME" with NAME the
// first default metric; "&rule=lm_eval" stays only where it is not the default rule. Metrics of programs are families:
// "humaneval.pass@10" is one, "humaneval.pass@k" stands for pass@1 and pass@samples. Empty `metrics`: the default ones,
// and maj@k of the first for k > 1 samples. k > samples is allowed (kUndefined cells). InvalidArgument: unknown or
// repeated metrics, bad k or rule.
absl::StatusOr<std::vector<std::string>> ResolveMetrics(const BenchmarkInfo& info, const SamplingParams& sampling,
                                                        const std::vector<std::string>& metrics);

}  // namespace iha::benchmarks
