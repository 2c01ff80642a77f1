#include "coordinator/planner/planner.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "common/errors.h"
#include "common/rng.h"
#include "common/sampling_limits.h"
#include "common/status_macros.h"
#include "common/text.h"

namespace iha::coordinator {
namespace {

constexpr int32_t kMaxSamples = 4096;
constexpr int32_t kMaxNewTokens = 1 << 20;
// No more than what the wire carries (proto/codec): a worker must be able to read every job that is planned.
constexpr double kMaxTemperature = 1000;
constexpr size_t kMaxTagBytes = 1024;
constexpr size_t kMaxOptionBytes = 65536;
constexpr size_t kMaxModels = 1000;
constexpr size_t kMaxEntries = 1000;

absl::Status ValidateSampling(const SamplingParams& p, bool likelihood, const std::string& where) {
  const bool draws = p.temperature >= kMinTemperature && p.temperature <= kMaxTemperature;
  if (p.temperature != 0 && !draws) {
    return InvalidArgument("{}: temperature {}; expected 0 (greedy), or a number from {} to {}", where, p.temperature,
                           kMinTemperature, kMaxTemperature);
  }
  if (!(p.top_p > 0 && p.top_p <= 1)) {
    return InvalidArgument("{}: top_p {}; expected a number in (0, 1] (1 = off)", where, p.top_p);
  }
  if (p.top_k < 0) return InvalidArgument("{}: top_k {}; expected >= 0 (0 = off)", where, p.top_k);
  if (p.samples < 1 || p.samples > kMaxSamples) {
    return InvalidArgument("{}: samples {}; expected 1 to {}", where, p.samples, kMaxSamples);
  }
  const int32_t fewest = likelihood ? 0 : 1;  // 0: as a normalized entry says it
  if (p.max_new_tokens < fewest || p.max_new_tokens > kMaxNewTokens) {
    return InvalidArgument("{}: max_new_tokens {}; expected {} to {}", where, p.max_new_tokens, fewest, kMaxNewTokens);
  }
  return absl::OkStatus();
}

absl::Status NormalizeModels(std::vector<ModelRef>* models) {
  if (models->empty()) return InvalidArgument("models: empty; name at least one model");
  if (models->size() > kMaxModels) return InvalidArgument("models: {}; at most {}", models->size(), kMaxModels);
  std::set<std::string> seen;
  for (ModelRef& model : *models) {
    IHA_RETURN_IF_ERROR(ValidateModelName(model.name));
    if (!seen.insert(model.name).second) {
      return InvalidArgument("models: {} is there twice; each row of a table has its own name", model.name);
    }
    if (model.weights_digest.empty()) continue;
    const absl::StatusOr<Digest> digest = ParseDigest(model.weights_digest);
    if (!digest.ok()) {
      return InvalidArgument("models: {}: weights_digest \"{}\"; expected 64 hex characters or nothing", model.name,
                             model.weights_digest);
    }
    model.weights_digest = digest->Hex();
  }
  return absl::OkStatus();
}

absl::Status ValidateNumerics(const NumericsSpec& n) {
  const auto one_of = [](const char* field, const std::string& found, const std::vector<std::string>& known,
                         const char* besides = "") -> absl::Status {
    if (std::find(known.begin(), known.end(), found) != known.end()) return absl::OkStatus();
    return InvalidArgument("numerics.{}: \"{}\"; expected one of {}{}", field, found, fmt::join(known, ", "), besides);
  };
  if (!IsTorchCudaName(n.backend) && !IsCudaExactName(n.backend) && !IsCudaFastName(n.backend)) {
    IHA_RETURN_IF_ERROR(one_of("backend", n.backend,
                               {"cpu-exact", "cuda-emulated", "cuda-fast-emulated", "torch", "fake"},
                               ", cuda-exact-sm_NN, cuda-fast-sm_NN, torch-cuda-sm_NN (NN: the GPU's architecture, as "
                               "90)"));
  }
  IHA_RETURN_IF_ERROR(one_of("weights_dtype", n.weights_dtype, {"stored", "f32", "bf16", "f16"}));
  IHA_RETURN_IF_ERROR(one_of("activation_dtype", n.activation_dtype, {"f32", "bf16"}));
  return one_of("kv_dtype", n.kv_dtype, {"f32", "bf16"});
}

absl::Status ValidateTag(const std::string& tag) {
  if (tag.size() > kMaxTagBytes) return InvalidArgument("run_tag: {} bytes; at most {}", tag.size(), kMaxTagBytes);
  if (TerminalSafe(tag) == tag) return absl::OkStatus();
  return InvalidArgument("run_tag: \"{}\"; expected one line of printable UTF-8", TerminalSafe(tag, 80));
}

absl::Status ValidateOptions(const BenchmarkRef& benchmark, const std::string& where) {
  for (const auto& [name, value] : benchmark.options) {
    if (value.size() > kMaxOptionBytes) {
      return InvalidArgument("{}: option {}: {} bytes; at most {}", where, name, value.size(), kMaxOptionBytes);
    }
    if (!IsValidUtf8(value)) {
      return InvalidArgument("{}: option {}: \"{}\"; expected UTF-8", where, name, TerminalSafe(value, 80));
    }
  }
  return absl::OkStatus();
}

// Scoring draws nothing: samples would all be one, and no other setting changes a bit, so that all are one entry.
absl::Status NormalizeLikelihood(const benchmarks::BenchmarkInfo& info, const std::string& where, SamplingParams* p) {
  if (p->samples != 1 || p->temperature != 0) {
    return InvalidArgument(
        "{}: samples {}, temperature {}; expected 1 and 0: its choices are scored, nothing is drawn; ask for it "
        "without them, in an entry or run of its own",
        where, p->samples, p->temperature);
  }
  *p = info.default_sampling;
  return absl::OkStatus();
}

absl::Status NormalizeEntry(const benchmarks::Benchmark& benchmark, const std::string& where, SweepEntry* entry) {
  IHA_RETURN_IF_ERROR(ValidateSampling(entry->sampling, benchmark.info().likelihood, where));
  if (benchmark.info().likelihood) {
    IHA_RETURN_IF_ERROR(NormalizeLikelihood(benchmark.info(), where, &entry->sampling));
  }
  if (entry->limit.has_value() && *entry->limit < 1) {
    return InvalidArgument("{}: limit {}; expected at least 1 item, or no limit", where, *entry->limit);
  }
  if (benchmark.size() < 1) return InvalidArgument("{}: the benchmark has no items", where);
  entry->benchmark = benchmark.ref();
  IHA_RETURN_IF_ERROR(ValidateOptions(entry->benchmark, where));
  if (entry->limit.has_value() && *entry->limit >= benchmark.size()) entry->limit.reset();
  absl::StatusOr<std::vector<std::string>> metrics =
      benchmarks::ResolveMetrics(benchmark.info(), entry->sampling, entry->metrics);
  if (!metrics.ok()) return Annotate(metrics.status(), where);
  entry->metrics = *std::move(metrics);
  return absl::OkStatus();
}

// Which samples are there depends on what came out: only the sequential gate's verdict is shown of such an entry.
absl::Status ValidateStop(const SweepSpec& spec, const SweepEntry& entry, const std::string& where) {
  if (!entry.stop_settled_votes) return absl::OkStatus();
  if (!spec.item_order.has_value()) {
    return InvalidArgument("{}: stop_settled_votes: the sweep has no item_order; only a sequential gate stops votes",
                           where);
  }
  return Annotate(benchmarks::CheckVotesOnly(entry), where + ": stop_settled_votes");
}

using OpenBenchmarks = std::vector<std::unique_ptr<const benchmarks::Benchmark>>;

absl::StatusOr<SweepSpec> Normalize(const SweepSpec& spec, const BenchmarkOpener& open, OpenBenchmarks* opened) {
  SweepSpec out = spec;
  IHA_RETURN_IF_ERROR(NormalizeModels(&out.models));
  IHA_RETURN_IF_ERROR(ValidateNumerics(out.numerics));
  IHA_RETURN_IF_ERROR(ValidateTag(out.run_tag));
  if (out.entries.empty()) return InvalidArgument("benchmarks: empty; name at least one benchmark");
  if (out.entries.size() > kMaxEntries) {
    return InvalidArgument("benchmarks: {}; at most {}", out.entries.size(), kMaxEntries);
  }
  if (out.max_attempts < 1 || out.max_attempts > 100) {
    return InvalidArgument("max_attempts: {}; expected 1 to 100", out.max_attempts);
  }
  if (out.shard_tokens < 1) return InvalidArgument("shard_tokens: {}; expected at least 1", out.shard_tokens);
  for (size_t e = 0; e < out.entries.size(); ++e) {
    SweepEntry& entry = out.entries[e];
    const std::string where = fmt::format("benchmarks[{}] ({})", e, entry.benchmark.name);
    auto benchmark_or = open(entry.benchmark);
    if (!benchmark_or.ok()) return Annotate(benchmark_or.status(), fmt::format("benchmarks[{}]", e));
    auto benchmark = *std::move(benchmark_or);
    IHA_RETURN_IF_ERROR(NormalizeEntry(*benchmark, where, &entry));
    IHA_RETURN_IF_ERROR(ValidateStop(out, entry, where));
    for (size_t earlier = 0; earlier < e; ++earlier) {
      if (out.entries[earlier] == entry) {
        return InvalidArgument("{}: equal to benchmarks[{}]; each column of a table is asked for once", where, earlier);
      }
    }
    opened->push_back(std::move(benchmark));
  }
  return out;
}

// What all models of one entry share.
struct EntryPlan {
  JobSpec job;
  std::vector<NewShard> shards;
};

std::vector<NewShard> ItemByItem(const std::vector<int64_t>& item_tokens) {
  std::vector<NewShard> shards;
  for (const int64_t tokens : item_tokens) {
    const auto index = static_cast<int64_t>(shards.size());
    shards.push_back({.range = {.begin = index, .end = index + 1}, .estimated_tokens = tokens});
  }
  return shards;
}

EntryPlan PlanEntry(const benchmarks::Benchmark& benchmark, const SweepSpec& spec, size_t index) {
  const SweepEntry& entry = spec.entries[index];
  EntryPlan plan;
  plan.job.entry_index = static_cast<int32_t>(index);
  plan.job.entry = entry;
  plan.job.benchmark_version = benchmark.info().version;
  plan.job.grader_version = benchmark.info().grader_version;
  plan.job.items = entry.limit.value_or(benchmark.size());
  plan.job.numerics_id = spec.numerics.Id();
  plan.job.data_digest = benchmark.data_digest();
  plan.job.prompt_digest = benchmarks::PromptDigest(benchmark, plan.job.items);
  std::vector<int64_t> tokens;
  tokens.reserve(static_cast<size_t>(plan.job.items));
  for (int64_t i = 0; i < plan.job.items; ++i) {
    const int64_t length = benchmark.info().item_tokens;
    tokens.push_back(length > 0 ? length + int64_t{entry.sampling.samples - 1} * entry.sampling.max_new_tokens
                                : EstimateTokens(benchmark.Render(i), entry.sampling));
  }
  plan.shards = spec.item_order.has_value() ? ItemByItem(tokens) : CutShards(tokens, spec.shard_tokens);
  return plan;
}

// A shard's turn is the step in which a sequential gate wants its item: each entry's order is walked at its own share
// of the longest (reports/gate_sequential).
void SetTurns(std::vector<EntryPlan>& entries, uint64_t seed) {
  int64_t longest = 0;
  for (const EntryPlan& entry : entries) longest = std::max(longest, entry.job.items);
  for (EntryPlan& entry : entries) {
    const int64_t items = entry.job.items;
    int64_t position = 0;
    for (const int64_t item : SeededOrder(seed, items)) {
      ++position;
      entry.shards[static_cast<size_t>(item)].turn = (position * longest + items - 1) / items;
    }
  }
}

}  // namespace

absl::Status ValidateModelName(const std::string& name) {
  const auto bad = [&name](const char* why) {
    return InvalidArgument("models: \"{}\": {}; expected a path below the workers' models root", TerminalSafe(name, 80),
                           why);
  };
  if (name.empty()) return bad("empty name");
  if (name.size() > 512) return bad("longer than 512 bytes");
  if (name.front() == '/') return bad("absolute path");
  if (TerminalSafe(name) != name) return bad("control character, direction override or broken UTF-8");
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    if (part.empty()) return bad("empty component");
    if (part == "." || part == "..") return bad("\".\" or \"..\" as a component");
    begin = end + 1;
  }
  return absl::OkStatus();
}

int64_t EstimateTokens(const benchmarks::Prompt& prompt, const SamplingParams& sampling) {
  int64_t bytes = 0;
  for (const benchmarks::Message& message : prompt.messages) bytes += static_cast<int64_t>(message.content.size());
  if (prompt.messages.empty()) bytes = static_cast<int64_t>(prompt.text.size());
  if (!prompt.choices.empty()) {
    int64_t tokens = 0;
    for (const std::string& choice : prompt.choices) tokens += (bytes + static_cast<int64_t>(choice.size())) / 3;
    return tokens;
  }
  return bytes / 3 + int64_t{sampling.samples} * sampling.max_new_tokens;
}

std::vector<NewShard> CutShards(const std::vector<int64_t>& item_tokens, int64_t shard_tokens) {
  std::vector<NewShard> shards;
  for (size_t i = 0; i < item_tokens.size(); ++i) {
    const int64_t index = static_cast<int64_t>(i);
    if (shards.empty() || shards.back().estimated_tokens + item_tokens[i] > shard_tokens) {
      shards.push_back({.range = {.begin = index, .end = index}, .estimated_tokens = 0});
    }
    shards.back().range.end = index + 1;
    shards.back().estimated_tokens += item_tokens[i];
  }
  return shards;
}

absl::StatusOr<SweepSpec> NormalizeSpec(const SweepSpec& spec, const BenchmarkOpener& open) {
  OpenBenchmarks opened;
  return Normalize(spec, open, &opened);
}

absl::StatusOr<SweepPlan> Plan(const SweepSpec& spec, const BenchmarkOpener& open) {
  OpenBenchmarks opened;
  SweepPlan plan;
  IHA_ASSIGN_OR_RETURN(plan.spec, Normalize(spec, open, &opened));
  plan.id = IdOf(plan.spec);
  std::vector<EntryPlan> entries;
  for (size_t e = 0; e < opened.size(); ++e) entries.push_back(PlanEntry(*opened[e], plan.spec, e));
  if (plan.spec.item_order.has_value()) SetTurns(entries, *plan.spec.item_order);
  for (size_t m = 0; m < plan.spec.models.size(); ++m) {
    for (const EntryPlan& entry : entries) {
      NewJob job{.id = {}, .spec = entry.job, .shards = entry.shards};
      job.spec.sweep = plan.id;
      job.spec.model_index = static_cast<int32_t>(m);
      job.spec.model = plan.spec.models[m];
      job.id = IdOf(job.spec);
      plan.jobs.push_back(std::move(job));
    }
  }
  return plan;
}

}  // namespace iha::coordinator
