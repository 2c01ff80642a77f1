#include "worker/engine/engine.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/errors.h"
#include "common/sampling_limits.h"
#include "common/status_macros.h"
#include "worker/engine/kv_budget.h"
#include "worker/engine/positions.h"

namespace iha::engine {
namespace {

absl::Status ValidateSampling(const SamplingParams& s) {
  if (!(s.temperature == 0 || (s.temperature >= kMinTemperature && std::isfinite(s.temperature)))) {
    return InvalidArgument("temperature: {} (expected 0, or {} and more)", s.temperature, kMinTemperature);
  }
  if (!(s.top_p > 0 && s.top_p <= 1)) return InvalidArgument("top_p: {} (expected above 0, at most 1)", s.top_p);
  if (s.top_k < 0) return InvalidArgument("top_k: {} (expected 0 = off, or more)", s.top_k);
  return absl::OkStatus();
}

absl::Status ValidateIds(const char* field, const std::vector<int32_t>& ids, int32_t vocab) {
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab) return InvalidArgument("{}: token id {} (expected 0 to {})", field, id, vocab - 1);
  }
  return absl::OkStatus();
}

absl::Status ValidateOptions(const SchedulerOptions& s) {
  const std::pair<const char*, int32_t> limits[] = {{"max_batch_tokens", s.max_batch_tokens},
                                                    {"max_sequences", s.max_sequences},
                                                    {"chunk_tokens", s.chunk_tokens},
                                                    {"max_logit_rows", s.max_logit_rows}};
  for (const auto& [name, value] : limits) {
    if (value < 1) return InvalidArgument("{}: {} (expected at least 1)", name, value);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(std::unique_ptr<model::Backend> backend,
                                                       TextDecoderFactory decoders, const EngineOptions& options) {
  IHA_RETURN_IF_ERROR(ValidateOptions(options.scheduler));
  // More can never be in use: the longest sequence in every slot, and as much again for kept prefixes. A small model
  // with a large budget would otherwise spend its start-up on memory that it never touches.
  const model::ModelInfo& info = backend->info();
  const int64_t sequence_blocks = (info.context_tokens + model::kKvBlockTokens - 1) / model::kKvBlockTokens;
  // In double: a config may name a context whose blocks times bytes leave 63 bits.
  const double useful = (2.0 * options.scheduler.max_sequences * static_cast<double>(sequence_blocks) *
                             static_cast<double>(info.kv_windows.size()) +
                         info.spare_blocks) *
                        static_cast<double>(info.kv_block_bytes);
  const bool of_device = options.device_sharers > 0 && info.device_bytes > 0;
  const int64_t budget = of_device ? DeviceKvBytes(info.device_bytes, options.device_sharers) : options.kv_bytes;
  const bool all = useful >= static_cast<double>(budget);
  IHA_ASSIGN_OR_RETURN(auto executor,
                       Executor::Create(std::move(backend), all ? budget : static_cast<int64_t>(useful)));
  return std::unique_ptr<Engine>(new Engine(std::move(executor), std::move(decoders), options));
}

Engine::Engine(std::unique_ptr<Executor> executor, TextDecoderFactory decoders, const EngineOptions& options)
    : decoders_(std::move(decoders)),
      clock_(options.clock),
      info_(executor->info()),
      kv_blocks_(executor->kv_blocks()),
      executor_(std::move(executor)),
      scheduler_(options.scheduler, executor_->kv_blocks(), info_.kv_windows),
      batch_limit_{
          .configured = options.scheduler.max_sequences, .now = options.scheduler.max_sequences, .good_steps = 0} {
  PublishCounters();
}

Engine::~Engine() {
  {
    absl::MutexLock lock(&mu_);
    draining_ = stopping_ = true;
  }
  if (thread_.joinable()) {
    thread_.join();
  } else {
    FailAll(absl::CancelledError("the engine is shutting down"));
  }
}

absl::Status Engine::Validate(const GenerationRequest& request) const {
  if (request.prompt.empty()) return InvalidArgument("prompt: no tokens (expected at least 1)");
  IHA_RETURN_IF_ERROR(ValidateSampling(request.sampling));
  for (const auto& [field, ids] :
       {std::pair("prompt", &request.prompt), std::pair("eos", &request.eos), std::pair("allowed", &request.allowed),
        std::pair("forbidden", &request.forbidden), std::pair("continuation", &request.continuation)}) {
    IHA_RETURN_IF_ERROR(ValidateIds(field, *ids, info_.vocab_size));
  }
  for (const std::string& stop : request.stops) {
    if (stop.empty()) return InvalidArgument("stops: an empty string (it would stop before the first token)");
  }
  const bool scoring = !request.continuation.empty();
  const int64_t prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t more = scoring ? static_cast<int64_t>(request.continuation.size()) : request.sampling.max_new_tokens;
  if (more < 1) return InvalidArgument("max_new_tokens: {} (expected at least 1)", more);
  if (request.min_new_tokens < 0 || request.top_logprobs < 0) {
    return InvalidArgument("min_new_tokens: {}, top_logprobs: {} (expected 0 or more)", request.min_new_tokens,
                           request.top_logprobs);
  }
  if (!FitsContext(prompt, more)) {
    return InvalidArgument("prompt: {} tokens and {} to come exceed the model's context of {}", prompt, more,
                           info_.context_tokens);
  }
  const int64_t need = scheduler_.MostBlocks(PositionsOf(prompt, more));
  if (need > kv_blocks_) {
    return ResourceExhausted("KV cache: {} prompt tokens and {} to come need {} blocks of {} bytes, the budget has {}",
                             prompt, more, need, info_.kv_block_bytes, kv_blocks_);
  }
  return absl::OkStatus();
}

bool Engine::FitsContext(int64_t prompt_tokens, int64_t more) const {
  return PositionsOf(prompt_tokens, more) <= info_.context_tokens;
}

absl::StatusOr<SequenceId> Engine::Submit(GenerationRequest request, ResultCallback on_done) {
  IHA_RETURN_IF_ERROR(Validate(request));
  absl::MutexLock lock(&mu_);
  if (draining_) return FailedPrecondition("the engine is draining: no new requests");
  const SequenceId id{next_id_++};
  outstanding_++;
  submitted_prompt_tokens_ += static_cast<int64_t>(request.prompt.size());
  inbox_.push_back({id, std::move(request), std::move(on_done)});
  return id;
}

void Engine::Cancel(SequenceId id) {
  absl::MutexLock lock(&mu_);
  cancels_.push_back(id);
}

std::optional<GenerationResult> Engine::TryPopResult() {
  absl::MutexLock lock(&mu_);
  return PopResultLocked();
}

std::optional<GenerationResult> Engine::PopResultLocked() {
  if (results_.empty()) return std::nullopt;
  GenerationResult result = std::move(results_.front());
  results_.pop_front();
  return result;
}

std::optional<GenerationResult> Engine::WaitResult() {
  absl::MutexLock lock(&mu_);
  const auto ready = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !results_.empty() || outstanding_ == 0; };
  mu_.Await(absl::Condition(&ready));
  return PopResultLocked();
}

void Engine::Drain() {
  absl::MutexLock lock(&mu_);
  draining_ = true;
  const auto idle = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return outstanding_ == 0; };
  mu_.Await(absl::Condition(&idle));
}

void Engine::Start() {
  thread_ = std::thread([this] { Loop(); });
}

void Engine::Loop() {
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      const auto wake = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
        return stopping_ || !inbox_.empty() || !cancels_.empty();
      };
      if (active_.empty()) mu_.Await(absl::Condition(&wake));
      if (stopping_) break;
    }
    const absl::StatusOr<bool> worked = Step();
    if (!worked.ok()) FailAll(worked.status());
  }
  FailAll(absl::CancelledError("the engine is shutting down"));
}

void Engine::TakeInbox() {
  std::vector<Arrival> arrivals;
  std::vector<SequenceId> cancels;
  {
    absl::MutexLock lock(&mu_);
    arrivals.swap(inbox_);
    cancels.swap(cancels_);
  }
  for (Arrival& arrival : arrivals) {
    auto decoder = arrival.request.continuation.empty() ? decoders_() : nullptr;
    const auto [entry, added] = active_.try_emplace(arrival.id, arrival.id, std::move(arrival.request),
                                                    std::move(decoder), std::move(arrival.on_done));
    const absl::Status status = scheduler_.Add(entry->second.ToSequence());
    if (!status.ok()) Finish(arrival.id, status);
  }
  for (const SequenceId id : cancels) {
    if (!active_.contains(id)) continue;
    scheduler_.Cancel(id);
    Finish(id, absl::CancelledError("cancelled"));
  }
}

absl::StatusOr<bool> Engine::Step() {
  TakeInbox();
  const absl::Duration begin = Now();
  const BatchPlan plan = scheduler_.Schedule();
  const absl::Duration planned = Now();
  tally_.schedule_time += planned - begin;
  if (plan.empty()) {
    Deliver();
    if (!active_.empty()) return Internal("ENG-7: {} requests left, and nothing to run", active_.size());
    return false;
  }
  const absl::Status status = executor_->Execute(plan, DrawsOf(plan));
  const absl::Duration executed = Now();
  CountForward(plan, executed - planned, status.ok());
  if (!status.ok()) {
    OnForwardError(plan, status);
  } else {
    batch_limit_ = AfterGoodStep(batch_limit_, scheduler_.running());
    scheduler_.LimitSequences(batch_limit_.now);
    ReadLogits(plan);
  }
  tally_.sample_time += Now() - executed;
  Deliver();
  return true;
}

std::vector<model::RowDraw> Engine::DrawsOf(const BatchPlan& plan) const {
  std::vector<model::RowDraw> draws(static_cast<size_t>(plan.logit_rows));
  if (!executor_->draws()) return draws;
  auto next = draws.begin();
  for (const PlannedSegment& segment : plan.segments) {
    // A request that draws has one row of logits in a step: the next token is not known before it.
    next = std::fill_n(next, segment.logit_rows.size(), active_.at(segment.sequence).NextDraw());
  }
  return draws;
}

void Engine::CountForward(const BatchPlan& plan, absl::Duration time, bool done) {
  int64_t prefill = 0;
  for (const PlannedSegment& segment : plan.segments) {
    const int64_t given = active_.at(segment.sequence).given_positions() - segment.start;
    prefill += std::clamp<int64_t>(given, 0, static_cast<int64_t>(segment.tokens.size()));
  }
  tally_.forward_time += time;
  tally_.prefill_time += time * (static_cast<double>(prefill) / static_cast<double>(plan.tokens));
  tally_.steps++;
  tally_.step_sequences += static_cast<int64_t>(plan.segments.size());
  if (!done) return;
  tally_.computed_tokens += plan.tokens;
  tally_.prefill_tokens += prefill;
}

void Engine::ReadLogits(const BatchPlan& plan) {
  std::vector<SegmentOutcome> outcomes;
  std::vector<std::pair<SequenceId, absl::Status>> done;
  int64_t row = 0;
  for (const PlannedSegment& segment : plan.segments) {
    ActiveRequest& request = active_.at(segment.sequence);
    SegmentOutcome outcome;
    outcome.sequence = segment.sequence;
    absl::Status status;
    for (const int32_t offset : segment.logit_rows) {
      const int64_t at = row++;
      if (outcome.finished) continue;
      if (const int32_t token = executor_->Token(at); token != model::kNoToken) {
        outcome = request.OnToken(token);
        continue;
      }
      const auto next = request.OnLogits(segment.start + offset, executor_->Logits(at), sampler_);
      if (next.ok()) {
        outcome = *next;
      } else {
        status = next.status();
        outcome.finished = true;
      }
    }
    tally_.generated_tokens += outcome.has_token ? 1 : 0;
    if (outcome.finished) done.emplace_back(segment.sequence, status);
    outcomes.push_back(outcome);
  }
  scheduler_.Update(plan, outcomes);
  for (auto& [id, status] : done) Finish(id, std::move(status));
}

void Engine::OnForwardError(const BatchPlan& plan, const absl::Status& status) {
  const int32_t running = scheduler_.running();
  scheduler_.Abandon();
  if (status.code() == absl::StatusCode::kResourceExhausted && running > 1) {
    // Less at once may fit; preemption changes no output (ENG-3).
    batch_limit_ = AfterShortage(batch_limit_, running);
    scheduler_.LimitSequences(batch_limit_.now);
    return;
  }
  for (const PlannedSegment& segment : plan.segments) {
    scheduler_.Cancel(segment.sequence);
    Finish(segment.sequence, status);
  }
}

void Engine::Finish(SequenceId id, absl::Status status) {
  const auto entry = active_.find(id);
  finished_.push_back({entry->second.TakeResult(std::move(status)), entry->second.on_done()});
  active_.erase(entry);
  tally_.results++;
}

void Engine::Deliver() {
  // Counters first: whoever sees the last result finds it counted.
  PublishCounters();
  std::vector<Delivery> deliveries;
  deliveries.swap(finished_);
  for (Delivery& delivery : deliveries) {
    if (delivery.on_done) delivery.on_done(std::move(delivery.result));
    absl::MutexLock lock(&mu_);
    if (!delivery.on_done) results_.push_back(std::move(delivery.result));
    outstanding_--;
  }
}

void Engine::FailAll(const absl::Status& status) {
  TakeInbox();
  while (!active_.empty()) {
    const SequenceId id = active_.begin()->first;
    scheduler_.Cancel(id);
    Finish(id, status);
  }
  Deliver();
}

void Engine::PublishCounters() {
  tally_.kv_blocks = scheduler_.pool().total();
  tally_.kv_blocks_used = scheduler_.pool().used();
  tally_.kv_blocks_peak = scheduler_.pool().peak_used();
  tally_.prefix_blocks = scheduler_.prefix_cache().size();
  tally_.prefix_evictions = scheduler_.prefix_cache().evictions();
  tally_.scheduler = scheduler_.counters();
  tally_.operations = executor_->profile();
  absl::MutexLock lock(&mu_);
  tally_.requests = next_id_;
  tally_.prompt_tokens = submitted_prompt_tokens_;
  published_ = tally_;
}

EngineCounters Engine::counters() const {
  absl::MutexLock lock(&mu_);
  return published_;
}

}  // namespace iha::engine
