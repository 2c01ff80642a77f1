// eval_types.h: the domain values that every part hands to the next (DESIGN section 4). Plain immutable structs; no
// wire types, no SQL. "Unscored" is an enum with a reason, never NaN or 0. Scores are exact rationals.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/digest.h"
#include "common/ids.h"
#include "common/numerics_spec.h"

namespace iha {

// ---- what is asked ---------------------------------------------------------------------------------------------

struct SamplingParams {
  double temperature = 0.0;      // 0 = argmax, lowest id on ties
  double top_p = 1.0;            // (0, 1]
  int32_t top_k = 0;             // 0 = off
  int32_t samples = 1;           // k samples an item
  uint64_t seed = 1234;          // enters the random stream's key only
  int32_t max_new_tokens = 256;  // generation limit, in tokens; 0 = nothing is drawn, choices are scored
  bool draws() const { return max_new_tokens > 0; }
  bool operator==(const SamplingParams&) const = default;
};

// "gsm8k?fewshot=8&prompt=chat" parsed: name + options in key order. Benchmarks validate the options.
struct BenchmarkRef {
  std::string name;
  std::map<std::string, std::string> options;
  bool operator==(const BenchmarkRef&) const = default;
};

// A model named by its path below the workers' models root ("." components refused); digest empty = whatever is there.
struct ModelRef {
  std::string name;
  std::string weights_digest;  // hex or ""
  bool operator==(const ModelRef&) const = default;
};

// One table column group: a benchmark under one sampling setting. Each model gets one job for each entry.
struct SweepEntry {
  BenchmarkRef benchmark;
  SamplingParams sampling;
  std::optional<int64_t> limit;      // first N items; absent = all
  std::vector<std::string> metrics;  // "gsm8k.strict_match", "maj@5?metric=gsm8k.robust", "gsm8k.robust" (mean = P@1)
  bool stop_settled_votes = false;   // an item's samples end once no vote can change; item_order, maj@samples only
  bool operator==(const SweepEntry&) const = default;
};

struct SweepSpec {
  std::vector<ModelRef> models;     // in table order; names unique
  std::vector<SweepEntry> entries;  // in table order
  NumericsSpec numerics;
  std::string run_tag;                      // forces a new sweep when changed
  int32_t max_attempts = 3;                 // lost or failed attempts a shard may be charged
  int64_t shard_tokens = 16384;             // target size of a shard in estimated tokens
  std::optional<uint64_t> item_order = {};  // seed of the order that items run in (SeededOrder); absent = by index
  bool operator==(const SweepSpec&) const = default;
};
SweepId IdOf(const SweepSpec& spec);

// One table cell's worth of work: one model x one entry, pinned to data. Filled by the planner.
struct JobSpec {
  SweepId sweep;
  int32_t model_index = 0;
  int32_t entry_index = 0;
  ModelRef model;
  SweepEntry entry;               // options and metrics with all defaults filled in
  std::string benchmark_version;  // "gsm8k/3"
  std::string grader_version;     // changes when a grader's verdicts may change
  int64_t items = 0;              // planned items, indices 0..items-1
  std::string numerics_id;
  Digest data_digest;    // of the data files read
  Digest prompt_digest;  // of all rendered prompts, stop rules and exemplar rule
};
JobId IdOf(const JobSpec& job);

struct ItemRange {
  int64_t begin = 0, end = 0;  // `end` is exclusive
  int64_t size() const { return end - begin; }
  auto operator<=>(const ItemRange&) const = default;
};

// ---- what was generated ----------------------------------------------------------------------------------------

enum class FinishReason { kUnspecified = 0, kEos, kStop, kLength };  // only these are stored; cancelled work is not
const char* NameOf(FinishReason reason);                             // "eos", "stop", "length"

// Content-addressed; no timing. Scores of an item's choices are one, too: `tokens` are those scored, choice after
// choice; `text` is that of scoring/choice_scores.h, `prompt_tokens` counts the prompt once, `finish` is kEos: no cut.
struct Generation {
  GenKey key;
  std::vector<int32_t> tokens;  // every token drawn, eos and the tokens that completed a stop string included
  std::string text;             // cut exactly at the stop string; never re-tokenised
  FinishReason finish = FinishReason::kUnspecified;
  int32_t prompt_tokens = 0;
  Digest Checksum() const;  // of all fields above
};

// Everything that decides a generation's bits; nothing else (no benchmark, item, worker, batch).
struct GenKeyInputs {
  Digest weights;
  Digest tokenizer;
  std::string numerics_id;
  std::vector<int32_t> prompt;
  SamplingParams sampling;  // `samples` is left out: sample i is the same for every k
  std::vector<std::string> stops;
  std::vector<int32_t> eos;
  int32_t sample_index = 0;
};
GenKey KeyOf(const GenKeyInputs& inputs);

// Text that is scored, not drawn: the log-probability of `tokens` behind `context`.
struct Continuation {
  std::vector<int32_t> context;
  std::vector<int32_t> tokens;
  bool operator==(const Continuation&) const = default;
};

// Everything that decides the bits of the scores of an item's choices: sampling, stops and eos have no part in them.
struct ScoreKeyInputs {
  Digest weights;
  Digest tokenizer;
  std::string numerics_id;
  std::vector<Continuation> choices;  // in the item's order
};
GenKey ScoreKeyOf(const ScoreKeyInputs& inputs);  // never a generation's: its encoding is of another kind

// Key of the Philox stream of one sample: first 64 bits of SHA-256(canonical(seed, sample index, prompt ids)).
uint64_t StreamKeyOf(uint64_t seed, int32_t sample_index, const std::vector<int32_t>& prompt);

// ---- what was judged -------------------------------------------------------------------------------------------

enum class Unscored {
  kScored = 0,
  kPending,        // not run yet (never stored; cells only)
  kPromptTooLong,  // prompt + max_new_tokens - 1 positions exceed the model's context: counted, never cut silently
  kQuarantined,    // the item killed its workers
  kCancelled,
  kGraderError,
  kGraderUnavailable,
  kUndefined,         // e.g. pass@k with k > n
  kGeneratorDeadEnd,  // the benchmark's own generator never ends at this item or one before it
  kDataExhausted,     // the benchmark's data hold no such item
};
inline constexpr Unscored kLastUnscored = Unscored::kDataExhausted;
const char* NameOf(Unscored reason);  // "scored", "pending", "prompt_too_long", ...

// Exact score in [0, 1]: num / den, den > 0, lowest terms.
struct Score {
  int64_t num = 0, den = 1;
  bool operator==(const Score&) const = default;
};

// One grader's verdict on one sample.
struct SampleGrade {
  std::string metric;     // base metric, "gsm8k.strict_match"
  std::string extracted;  // the answer as the metric's tool logs it ("[invalid]" included)
  bool valid = false;     // false: nothing could be extracted
  Unscored unscored = Unscored::kScored;
  Score score;
  std::string reason;  // which rule decided, human-readable
  // Votes: the index of the item's first sample whose answer the metric holds equal; -1 without a valid answer.
  int32_t group = -1;
  bool operator==(const SampleGrade&) const = default;
};

// One metric's value for one item (mean over samples, vote, pass@k).
struct ItemValue {
  std::string metric;  // as in SweepEntry::metrics
  Unscored unscored = Unscored::kScored;
  Score score;
  std::string winner;   // votes: representative of the leading group
  Score tie;            // votes: probability that leaders tie
  int32_t invalid = 0;  // samples without a valid answer
  bool operator==(const ItemValue&) const = default;
};

struct SampleResult {
  GenKey generation;
  std::vector<SampleGrade> grades;
  bool operator==(const SampleResult&) const = default;
};

// One item of one job, all its samples together: the unit of commit.
struct ItemResult {
  int64_t index = 0;
  std::string item_id;                    // the benchmark's own id
  Unscored unscored = Unscored::kScored;  // other than kScored: no samples, the reason stands for every metric
  std::vector<SampleResult> samples;      // in sample order; fewer than k where SweepEntry::stop_settled_votes
  std::vector<ItemValue> values;          // one for each metric of the entry
  bool operator==(const ItemResult&) const = default;
  Digest Hash() const;  // of everything above: equal results have equal digests, whoever computed them
};

}  // namespace iha
