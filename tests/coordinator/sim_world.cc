#include "tests/coordinator/sim_world.h"

#include <algorithm>

#include "common/status_macros.h"

namespace iha::coordinator {

std::vector<SimConfig> SimConfigs() {
  return {{.name = "memory"},
          {.name = "disk", .on_disk = true},
          {.name = "restart_each_step", .on_disk = true, .restart_each_step = true},
          {.name = "calls_twice", .call_twice = true},
          {.name = "first_reply_lost", .call_twice = true, .lose_first_reply = true},
          {.name = "restart_between_calls", .on_disk = true, .call_twice = true, .restart_between_calls = true}};
}

CoordinatorConfig SimCoordinatorConfig() {
  CoordinatorConfig config;
  // Spread and first backoff together stay below a second, so that "advance 31s" means the same under every config.
  config.lease.restart_spread = absl::Milliseconds(400);
  config.rescue.backoff_base = absl::Milliseconds(500);
  config.version = "test";
  return config;
}

SimWorld::SimWorld(SimConfig config, std::string db_path) : config_(std::move(config)), db_path_(std::move(db_path)) {}

absl::Status SimWorld::Open() {
  SqliteStoreOptions options;
  if (config_.on_disk) options.path = db_path_;
  IHA_ASSIGN_OR_RETURN(store_, OpenSqliteStore(options));
  IHA_ASSIGN_OR_RETURN(coordinator_,
                       Coordinator::Open(store_.get(), &clock_, SimOpener(benchmark_), SimCoordinatorConfig()));
  return absl::OkStatus();
}

absl::Status SimWorld::Restart() {
  coordinator_.reset();
  if (config_.on_disk) {
    store_.reset();
    return Open();
  }
  IHA_ASSIGN_OR_RETURN(coordinator_,
                       Coordinator::Open(store_.get(), &clock_, SimOpener(benchmark_), SimCoordinatorConfig()));
  return absl::OkStatus();
}

absl::Status SimWorld::Advance(absl::Duration by) {
  absl::Status first;  // the service's loop goes on after an error, too
  while (by > absl::ZeroDuration()) {
    const absl::Duration step = std::min(by, absl::Seconds(1));
    clock_.Advance(step);
    by -= step;
    first.Update(coordinator_->Tick());
  }
  return first;
}

Digest SimWeights(const std::string& label) { return Sha256Of("weights " + label); }
Digest SimTokenizer() { return Sha256Of("tokenizer"); }

absl::StatusOr<SimWork> DoSimWork(const LeaseGrant& grant, int64_t item, const SimWorkOptions& options) {
  IHA_ASSIGN_OR_RETURN(const auto benchmark, OpenSimBenchmark(grant.job.entry.benchmark));
  const benchmarks::Prompt prompt = benchmark->Render(item);
  SimWork work;
  work.item.index = item;
  work.item.item_id = benchmark->ItemId(item);
  std::vector<std::string> texts;
  const int32_t samples = options.samples >= 0 ? options.samples : grant.job.entry.sampling.samples;
  for (int32_t k = 0; k < samples; ++k) {
    GenKeyInputs inputs{.weights = grant.weights,
                        .tokenizer = grant.tokenizer,
                        .numerics_id = grant.job.numerics_id + options.variant,
                        .prompt = {prompt.text.begin(), prompt.text.end()},
                        .sampling = grant.job.entry.sampling,
                        .stops = prompt.stops,
                        .eos = {0},
                        .sample_index = k};
    Generation generation;
    generation.key = KeyOf(inputs);
    generation.text = (item + k) % 2 == 0 ? benchmark->Gold(item) : fmt::format("no{}", k);
    if (!options.text.empty()) generation.text = options.text;
    generation.tokens.assign(generation.text.begin(), generation.text.end());
    generation.finish = FinishReason::kEos;
    generation.prompt_tokens = static_cast<int32_t>(inputs.prompt.size());
    texts.push_back(generation.text);
    work.item.samples.push_back({.generation = generation.key, .grades = {}});
    work.generations.push_back(std::move(generation));
  }
  if (texts.empty()) return work;
  const auto grades =
      benchmark->Grade(item, texts, benchmarks::BaseMetrics(benchmark->info(), grant.job.entry.metrics));
  for (size_t s = 0; s < texts.size(); ++s) work.item.samples[s].grades = grades[s];
  IHA_ASSIGN_OR_RETURN(work.item.values, benchmarks::EntryValues(grant.job.entry, grades));
  return work;
}

}  // namespace iha::coordinator
