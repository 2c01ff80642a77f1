#include "worker/runner/shard_run.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>

#include "common/errors.h"
#include "common/fault_point.h"
#include "common/status_macros.h"

namespace iha::worker {
namespace {

// Keys of one lookup: the answer of this many generations stays below the transport's message limit.
constexpr size_t kLookupKeys = 256;

scoring::ChoiceScore ScoreOf(const engine::GenerationResult& result) {
  const auto greedy = [](const engine::TokenScore& score) { return score.greedy; };
  return {.loglikelihood = result.sum_logprob,
          .tokens = static_cast<int32_t>(result.scores.size()),
          .greedy = std::all_of(result.scores.begin(), result.scores.end(), greedy)};
}

}  // namespace

absl::Status ShardRun::Start(WorkerApi& api, std::shared_ptr<const benchmarks::Benchmark> benchmark,
                             const LoadedModel& model, benchmarks::PromptEncoder& encoder, engine::Engine& engine,
                             EventQueue& events, ItemFinisher& finisher) {
  benchmark_ = std::move(benchmark);
  eos_ = model.eos;
  for (const int64_t index : grant_->missing) {
    IHA_ASSIGN_OR_RETURN(ItemWork work,
                         PrepareItem(*grant_, *benchmark_, encoder, model.eos, engine.info().context_tokens, index));
    items_.push_back(std::move(work));
  }
  IHA_RETURN_IF_ERROR(FetchKnown(api));
  for (size_t i = 0; i < items_.size(); i++) {
    IHA_RETURN_IF_ERROR(Proceed(i, std::nullopt, engine, events, finisher));
  }
  return absl::OkStatus();
}

absl::Status ShardRun::FetchKnown(WorkerApi& api) {
  absl::flat_hash_map<GenKey, std::vector<std::pair<size_t, size_t>>> wanted;
  std::vector<GenKey> keys;
  for (size_t i = 0; i < items_.size(); i++) {
    for (size_t s = 0; s < items_[i].keys.size(); s++) {
      auto& places = wanted[items_[i].keys[s]];
      if (places.empty()) keys.push_back(items_[i].keys[s]);
      places.emplace_back(i, s);
    }
  }
  for (size_t begin = 0; begin < keys.size(); begin += kLookupKeys) {
    const size_t end = std::min(keys.size(), begin + kLookupKeys);
    const LookupGenerationsRequest request{
        .keys = {keys.begin() + static_cast<std::ptrdiff_t>(begin), keys.begin() + static_cast<std::ptrdiff_t>(end)}};
    IHA_ASSIGN_OR_RETURN(const LookupGenerationsReply reply, api.LookupGenerations(request));
    for (const Generation& generation : reply.found) {
      for (const auto& [item, sample] : wanted[generation.key]) items_[item].samples[sample] = generation;
    }
  }
  return absl::OkStatus();
}

absl::Status ShardRun::Proceed(size_t item, std::optional<JobTelemetry> telemetry, engine::Engine& engine,
                               EventQueue& events, ItemFinisher& finisher) {
  ItemWork& work = items_[item];
  IHA_RETURN_IF_ERROR(WantUntilSettled(grant_->job, *benchmark_, work));
  if (!work.complete()) return Submit(item, engine, events);
  return finisher.Finish(grant_, benchmark_, std::move(work), std::move(telemetry));
}

absl::Status ShardRun::Submit(size_t item, engine::Engine& engine, EventQueue& events) {
  const ItemWork& work = items_[item];
  for (size_t choice = 0; choice < work.choices.size(); choice++) {
    engine::GenerationRequest request;
    request.prompt = work.choices[choice].context;
    request.continuation = work.choices[choice].tokens;
    IHA_RETURN_IF_ERROR(SubmitOne(item, choice, std::move(request), engine, events));
  }
  if (!work.choices.empty()) return absl::OkStatus();
  for (size_t sample = 0; sample < work.wanted; sample++) {
    if (work.samples[sample].has_value()) continue;
    engine::GenerationRequest request;
    request.prompt = work.prompt;
    request.sampling = grant_->job.entry.sampling;
    request.sample_index = static_cast<int32_t>(sample);
    request.stops = work.stops;
    request.eos = eos_;
    IHA_RETURN_IF_ERROR(SubmitOne(item, sample, std::move(request), engine, events));
  }
  return absl::OkStatus();
}

absl::Status ShardRun::SubmitOne(size_t item, size_t sample, engine::GenerationRequest request, engine::Engine& engine,
                                 EventQueue& events) {
  auto id = engine.Submit(std::move(request), [&events, shard = grant_->shard, fence = grant_->fence, item,
                                               sample](engine::GenerationResult result) {
    events.WaitPush(
        SampleDone{.shard = shard, .fence = fence, .item = item, .sample = sample, .result = std::move(result)});
  });
  if (id.status().code() == absl::StatusCode::kResourceExhausted) {
    return ResourceExhausted("{}; raise --kv-memory-mib", std::string(id.status().message()));
  }
  if (!id.ok()) return id.status();
  sequences_.push_back(*id);
  waiting_++;
  return absl::OkStatus();
}

absl::Status ShardRun::OnSample(SampleDone done, JobTelemetry telemetry, engine::Engine& engine, EventQueue& events,
                                ItemFinisher& finisher) {
  waiting_--;
  ItemWork& work = items_[done.item];
  if (!done.result.status.ok()) {
    const char* what = work.choices.empty() ? "sample" : "choice";
    return Annotate(done.result.status, fmt::format("item {} {} {}", work.index, what, done.sample));
  }
  IHA_FAULT_POINT("worker.sample.done");
  if (!work.choices.empty()) {
    work.AddScore(done.sample, ScoreOf(done.result));
  } else {
    work.samples[done.sample] = Generation{.key = work.keys[done.sample],
                                           .tokens = std::move(done.result.tokens),
                                           .text = std::move(done.result.text),
                                           .finish = done.result.finish,
                                           .prompt_tokens = done.result.prompt_tokens};
    work.fresh[done.sample] = true;
  }
  if (!work.complete()) return absl::OkStatus();
  return Proceed(done.item, std::move(telemetry), engine, events, finisher);
}

void ShardRun::Abandon(engine::Engine& engine) {
  for (const engine::SequenceId id : sequences_) engine.Cancel(id);
}

}  // namespace iha::worker
