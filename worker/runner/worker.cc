#include "worker/runner/worker.h"

#include <fmt/format.h>

#include <algorithm>

#include "benchmarks/graders/graders.h"
#include "common/errors.h"
#include "common/fault_point.h"
#include "common/retry.h"
#include "common/status_macros.h"
#include "worker/engine/telemetry.h"
#include "worker/engine/tokenizer_decoder.h"

namespace iha::worker {
namespace {

constexpr size_t kEventsHigh = 1 << 16;
constexpr size_t kEventsLow = 1 << 15;
// How long the loop sleeps at most before it looks at stop flags and leases again.
constexpr absl::Duration kTick = absl::Milliseconds(100);
// Below this many samples in the engine the next lease is pulled, so that the batch does not run dry between leases.
// Who may hold more leases than that is given more: each has one sample at least.
constexpr int64_t kRefillSamples = 16;

std::string_view Text(const absl::Status& status) { return {status.message().data(), status.message().size()}; }

// A model that could not be served is tried again after this.
constexpr absl::Duration kModelRetry = absl::Seconds(60);

// Worth a retry elsewhere or later, or a fault of the data that no retry cures.
bool IsPermanent(const absl::Status& status) {
  return status.code() == absl::StatusCode::kInvalidArgument || status.code() == absl::StatusCode::kDataLoss;
}

// Whether the benchmark that is open here is the one that the job was planned with, prompt for prompt.
bool Matches(const benchmarks::Benchmark& benchmark, const JobSpec& job) {
  const benchmarks::BenchmarkInfo& info = benchmark.info();
  return benchmark.data_digest() == job.data_digest && info.version == job.benchmark_version &&
         info.grader_version == job.grader_version && PromptDigest(benchmark, job.items) == job.prompt_digest;
}

}  // namespace

Worker::Worker(WorkerApi& api, ModelSource& models, Clock& clock, WorkerOptions options)
    : api_(api),
      models_(models),
      clock_(clock),
      options_(std::move(options)),
      events_(kEventsHigh, kEventsLow),
      ledger_(options_.incarnation) {}

RequestId Worker::NextRequestId(const char* what) {
  return {fmt::format("{}.{}.{}.{}", options_.id.value, options_.incarnation, what, requests_++)};
}

absl::Status Worker::Register() {
  const RegisterWorkerRequest request{.request_id = NextRequestId("register"),
                                      .worker = options_.id,
                                      .incarnation = options_.incarnation,
                                      .numerics_ids = models_.NumericsIds(),
                                      .description = options_.description};
  IHA_ASSIGN_OR_RETURN(const RegisterWorkerReply reply, api_.RegisterWorker(request));
  if (keeper_ == nullptr) {
    keeper_ = std::make_unique<LeaseKeeper>(api_, options_.id, options_.incarnation, reply.heartbeat_interval, clock_,
                                            events_);
  }
  accepted_.clear();
  OfferModels(reply.wanted_models);
  return absl::OkStatus();
}

void Worker::OfferModels(const std::vector<std::string>& wanted) {
  OfferModelsRequest request{.request_id = NextRequestId("offer"), .worker = options_.id, .offers = {}};
  for (const std::string& name : wanted) {
    const bool known = std::find(accepted_.begin(), accepted_.end(), name) != accepted_.end();
    const auto unusable = unusable_.find(name);
    if (known || (unusable != unusable_.end() && clock_.Elapsed() < unusable->second.retry_at)) continue;
    absl::StatusOr<ModelOffer> offer = models_.Offer(name);
    if (offer.ok()) {
      request.offers.push_back(*std::move(offer));
      continue;
    }
    SetUnusable(name, std::string(Text(offer.status())));
  }
  if (request.offers.empty()) return;
  const absl::StatusOr<OfferModelsReply> reply = api_.OfferModels(request);
  if (!reply.ok()) {
    Log(fmt::format("offering models: {}", Text(reply.status())));
    return;
  }
  accepted_.insert(accepted_.end(), reply->accepted.begin(), reply->accepted.end());
  for (const ModelOffer& offer : request.offers) {
    const bool accepted = std::find(accepted_.begin(), accepted_.end(), offer.name) != accepted_.end();
    if (accepted) {
      unusable_.erase(offer.name);
    } else {
      SetUnusable(offer.name, fmt::format("refused: {}", fmt::join(reply->refused, "; ")));
    }
  }
}

void Worker::SetUnusable(const std::string& name, const std::string& reason) {
  Unusable& entry = unusable_[name];
  if (entry.reason != reason) Log(fmt::format("model {}: {}", name, reason));
  entry = {.reason = reason, .retry_at = clock_.Elapsed() + kModelRetry};
}

absl::Status Worker::Unserved(const std::vector<std::string>& wanted) const {
  if (wanted.empty() && !all_done_ && !refused_.empty()) {
    return Unavailable("nothing left that this worker can serve: {}", refused_.begin()->second);
  }
  std::string reasons;
  for (const std::string& name : wanted) {
    const auto at = unusable_.find(name);
    if (at == unusable_.end()) return absl::OkStatus();
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", name, at->second.reason);
  }
  return reasons.empty() ? absl::OkStatus() : FailedPrecondition("no model left to serve: {}", reasons);
}

absl::Status Worker::Run() {
  outbox_ = std::make_unique<Outbox>(api_, options_.id, options_.incarnation, clock_, events_,
                                     [this] { return stopping_.load(); });
  benchmarks::CodeJudge* const judge = options_.graders == nullptr ? nullptr : options_.graders->code_judge();
  finisher_ = std::make_unique<ItemFinisher>(*outbox_, events_, judge == nullptr ? 1 : judge->parallel());
  absl::Status status = Register();
  while (status.ok() && !stopping_.load()) {
    if (keeper_->TakeNotRegistered()) status = Register();
    // As long as there is room: one a tick would leave a batch of small leases half empty.
    for (size_t before = runs_.size() + 1; status.ok() && !stopping_.load() && before != runs_.size();) {
      before = runs_.size();
      status = MaybeAcquire();
    }
    if (!status.ok() || (all_done_ && options_.exit_when_done && runs_.empty())) break;
    std::optional<Event> event = events_.WaitPopUntil(clock_, clock_.Elapsed() + kTick);
    for (; event.has_value(); event = events_.TryPop()) {
      std::visit([this](auto& e) { Handle(std::move(e)); }, *event);
    }
    ReportLoad();
  }
  DrainLeases(status.ok() ? options_.drain : absl::ZeroDuration());
  events_.Close();  // nobody takes any more: who has one to push must not wait for room
  engine_.reset();
  finisher_.reset();
  outbox_.reset();
  keeper_.reset();
  return status;
}

absl::Status Worker::MaybeAcquire() {
  int64_t waiting = 0;
  for (const ShardRun& run : runs_) waiting += run.waiting();
  const bool accepted = std::find(accepted_.begin(), accepted_.end(), loaded_name_) != accepted_.end();
  alone_ = alone_ && !runs_.empty();
  const int64_t refill = std::max(kRefillSamples, static_cast<int64_t>(options_.max_leases));
  const bool second = accepted && !alone_ && runs_.size() < options_.max_leases && waiting < refill;
  const bool room = runs_.empty() || second;
  if (!room || outbox_->congested() || clock_.Elapsed() < idle_until_) return absl::OkStatus();

  AcquireLeaseRequest request{.request_id = NextRequestId("acquire"),
                              .worker = options_.id,
                              .incarnation = options_.incarnation,
                              .models = accepted_,
                              .numerics_ids = models_.NumericsIds()};
  for (const auto& [name, reason] : refused_) request.refused_benchmarks.push_back(name);
  if (!runs_.empty()) {
    // Another model could only be loaded once these leases are done.
    request.models = {loaded_name_};
    request.numerics_ids = {loaded_numerics_};
  } else if (auto at = std::find(request.models.begin(), request.models.end(), loaded_name_);
             at != request.models.end()) {
    std::rotate(request.models.begin(), at, at + 1);
  }
  const absl::StatusOr<AcquireLeaseReply> reply = api_.AcquireLease(request);
  if (!reply.ok()) {
    if (reply.status().code() == absl::StatusCode::kNotFound) return Register();
    return reply.status();
  }
  all_done_ = reply->all_done;
  OfferModels(reply->wanted_models);
  if (reply->grant.has_value()) return StartLease(*reply->grant);
  if (options_.exit_when_done && runs_.empty()) IHA_RETURN_IF_ERROR(Unserved(reply->wanted_models));
  idle_until_ = clock_.Elapsed() + reply->retry_after;
  return absl::OkStatus();
}

// Programs are only taken where they can be judged: another worker may have a sandbox that holds.
absl::Status Worker::CanGrade(const benchmarks::Benchmark& benchmark) const {
  if (!benchmark.info().runs_code) return absl::OkStatus();
  benchmarks::CodeJudge* const judge = options_.graders == nullptr ? nullptr : options_.graders->code_judge();
  const absl::Status ready = judge == nullptr ? Unavailable("it has no sandbox") : judge->Ready();
  if (ready.ok()) return absl::OkStatus();
  return Unavailable("{}: {}: {}", benchmark.info().name, kRunsNoPrograms, std::string(ready.message()));
}

absl::StatusOr<std::shared_ptr<const benchmarks::Benchmark>> Worker::OpenFor(const JobSpec& job) {
  const std::string key = benchmarks::ToString(job.entry.benchmark);
  auto& cached = benchmarks_[key];
  // Data may have been imported anew since: an open benchmark that differs from the job is opened again, once.
  if (cached != nullptr && Matches(*cached, job)) return cached;
  IHA_ASSIGN_OR_RETURN(cached, benchmarks::OpenBenchmark(job.entry.benchmark, options_.data_root, options_.graders));
  if (Matches(*cached, job)) return cached;
  return FailedPrecondition(
      "{}: this worker's data or version differ from the coordinator's ({}, grader {}); use the same release and data "
      "root",
      key, job.benchmark_version, job.grader_version);
}

absl::StatusOr<int64_t> Worker::PositionsFor(const LeaseGrant& grant, const benchmarks::Benchmark& benchmark) {
  const int64_t item_tokens = benchmark.info().item_tokens;
  if (item_tokens == 0) return 0;
  IHA_ASSIGN_OR_RETURN(const ModelOffer offer, models_.Offer(grant.job.model.name));
  IHA_RETURN_IF_ERROR(benchmarks::CheckContext(grant.job.entry.benchmark, grant.job.model.name, offer.context_tokens));
  if (item_tokens <= offer.context_tokens) return 0;
  return item_tokens + grant.job.entry.sampling.max_new_tokens;
}

absl::StatusOr<std::shared_ptr<const benchmarks::Benchmark>> Worker::ItemsOf(
    const LeaseGrant& grant, const std::shared_ptr<const benchmarks::Benchmark>& opened) {
  if (opened->info().item_tokens == 0 || grant.missing.empty()) return opened;
  const std::string key = fmt::format("{} {}", benchmarks::ToString(opened->ref()), grant.job.items);
  // Each may hold a whole haystack: no more than there are leases.
  if (!sources_.contains(key) && sources_.size() >= options_.max_leases) sources_.clear();
  auto& source = sources_[key];
  if (source == nullptr) {
    IHA_ASSIGN_OR_RETURN(source, opened->ForCheckpoint({.tokenizer = loaded_.tokenizer,
                                                        .items = grant.job.items,
                                                        .cache_dir = options_.cache_dir,
                                                        .threads = options_.threads}));
  }
  const auto [first, last] = std::minmax_element(grant.missing.begin(), grant.missing.end());
  return source->Items({.begin = *first, .end = *last + 1});
}

absl::Status Worker::Load(const LeaseGrant& grant, int64_t positions) {
  const std::string& name = grant.job.model.name;
  const bool same = loaded_name_ == name && loaded_numerics_ == grant.job.numerics_id;
  if (engine_ != nullptr && same && loaded_positions_ == positions) return absl::OkStatus();
  sources_.clear();
  engine_.reset();  // before the next model is loaded: two do not fit
  load_tokens_ = 0;
  ledger_.StartEngine();
  loaded_name_.clear();
  Log(fmt::format("loading {}", name));
  IHA_ASSIGN_OR_RETURN(loaded_, models_.Load(name, grant.job.numerics_id, positions));
  const auto decoders = [tokenizer = loaded_.tokenizer]() -> std::unique_ptr<engine::TextDecoder> {
    return engine::MakeTokenizerDecoder(tokenizer, /*skip_special=*/true);
  };
  IHA_ASSIGN_OR_RETURN(engine_, engine::Engine::Create(std::move(loaded_.backend), decoders, options_.engine));
  engine_->Start();
  encoder_ = std::make_unique<benchmarks::PromptEncoder>(loaded_.tokenizer);
  loaded_name_ = name;
  loaded_numerics_ = grant.job.numerics_id;
  loaded_positions_ = positions;
  return absl::OkStatus();
}

absl::Status Worker::StartLease(LeaseGrant grant) {
  IHA_FAULT_POINT("worker.lease.start");
  keeper_->Add(grant.shard, grant.fence);
  absl::StatusOr<std::shared_ptr<const benchmarks::Benchmark>> benchmark = OpenFor(grant.job);
  ShardRun& run = runs_.emplace_back(std::move(grant));
  if (!benchmark.ok()) {
    Fail(run, benchmark.status());
    return absl::OkStatus();
  }
  if (const absl::Status fit = CanGrade(**benchmark); !fit.ok()) {
    Refuse(run, fit);
    return absl::OkStatus();
  }
  const absl::StatusOr<int64_t> positions = PositionsFor(run.grant(), **benchmark);
  if (!positions.ok()) {
    Fail(run, positions.status());
    return absl::OkStatus();
  }
  if (runs_.size() > 1 && *positions != loaded_positions_) {
    alone_ = true;
    TurnBack(run, absl::UnavailableError("the model is running with another number of positions"));
    return absl::OkStatus();
  }
  const absl::Status status = Begin(run, *benchmark, *positions);
  if (status.code() == absl::StatusCode::kResourceExhausted) {
    TurnBack(run, status);
  } else if (!status.ok()) {
    Fail(run, status);
  }
  return absl::OkStatus();
}

absl::Status Worker::Begin(ShardRun& run, const std::shared_ptr<const benchmarks::Benchmark>& benchmark,
                           int64_t positions) {
  absl::Status status = Load(run.grant(), positions);
  const bool loaded = status.ok();
  if (loaded) {
    absl::StatusOr<std::shared_ptr<const benchmarks::Benchmark>> items = ItemsOf(run.grant(), benchmark);
    status = items.ok() ? run.Start(api_, *std::move(items), loaded_, *encoder_, *engine_, events_, *finisher_)
                        : items.status();
  }
  // Otherwise the next shards of this model would be pulled and failed one after another.
  const bool too_large = status.code() == absl::StatusCode::kResourceExhausted;
  if (!loaded || too_large) Disown(run.grant().job.model.name, status);
  return status;
}

void Worker::TurnBack(ShardRun& run, const absl::Status& status) {
  if (engine_ != nullptr) run.Abandon(*engine_);
  Release(run, ReleaseReason::kDrain, status);
  Drop(run.grant().shard, run.grant().fence);
}

void Worker::Refuse(ShardRun& run, const absl::Status& status) {
  Log(std::string(Text(status)));
  refused_[run.grant().job.entry.benchmark.name] = std::string(Text(status));
  Release(run, ReleaseReason::kUnfit, status);
  Drop(run.grant().shard, run.grant().fence);
}

void Worker::Disown(const std::string& model, const absl::Status& status) {
  std::erase(accepted_, model);
  SetUnusable(model, std::string(Text(status)));
}

ShardRun* Worker::Find(ShardId shard, Fence fence) {
  for (ShardRun& run : runs_) {
    if (run.Is(shard, fence)) return &run;
  }
  return nullptr;
}

void Worker::Handle(SampleDone done) {
  ShardRun* run = Find(done.shard, done.fence);
  if (run == nullptr) return;  // the lease is gone; so is the need
  JobTelemetry telemetry = ledger_.Account(run->grant().job_id, engine::TelemetryOf(engine_->counters()));
  const absl::Status status = run->OnSample(std::move(done), std::move(telemetry), *engine_, events_, *finisher_);
  if (!status.ok()) Fail(*run, status);
}

void Worker::Handle(ItemCommitted committed) {
  ShardRun* run = Find(committed.shard, committed.fence);
  if (run == nullptr) return;
  const bool stored = committed.outcome.ok() || committed.outcome.code() == absl::StatusCode::kAlreadyExists;
  const bool lease_over = committed.outcome.code() == absl::StatusCode::kAborted ||
                          committed.outcome.code() == absl::StatusCode::kFailedPrecondition;
  // Nobody's fault, so no attempt is charged: each has stored more of the samples that can differ.
  if (committed.outcome.code() == absl::StatusCode::kOutOfRange) return TurnBack(*run, committed.outcome);
  if (!stored && !lease_over) return Fail(*run, committed.outcome);
  if (!stored) {
    // Aborted: another worker owns the shard now. FailedPrecondition: it is final. Either way the plan is void, and
    // what was generated is in the cache.
    Log(fmt::format("shard {}: {}", static_cast<int64_t>(committed.shard), Text(committed.outcome)));
    run->Abandon(*engine_);
    Drop(committed.shard, committed.fence);
    return;
  }
  run->OnCommitted();
  if (committed.shard_done || run->AllCommitted()) Drop(committed.shard, committed.fence);
}

void Worker::Handle(const LeaseEnded& ended) {
  ShardRun* run = Find(ended.shard, ended.fence);
  if (run == nullptr) return;
  Log(fmt::format("shard {}: the lease has ended", static_cast<int64_t>(ended.shard)));
  if (engine_ != nullptr) run->Abandon(*engine_);
  Drop(ended.shard, ended.fence);
}

void Worker::Handle(const ItemFailed& failed) {
  if (ShardRun* const run = Find(failed.shard, failed.fence)) Fail(*run, failed.status);
}

void Worker::Fail(ShardRun& run, const absl::Status& status) {
  Log(fmt::format("shard {} of {}: {}", static_cast<int64_t>(run.grant().shard), run.grant().job.model.name,
                  Text(status)));
  if (engine_ != nullptr) run.Abandon(*engine_);
  // A call that was not repeated because we are stopping says nothing against the shard.
  const bool cut_short = stopping_.load() && IsRetryable(status);
  Release(run, cut_short ? ReleaseReason::kDrain : ReleaseReason::kFailed, status);
  Drop(run.grant().shard, run.grant().fence);
}

void Worker::Release(const ShardRun& run, ReleaseReason reason, const absl::Status& status) {
  const absl::Status released = api_.ReleaseLease({.request_id = NextRequestId("release"),
                                                   .worker = options_.id,
                                                   .shard = run.grant().shard,
                                                   .fence = run.grant().fence,
                                                   .reason = reason,
                                                   .error = std::string(Text(status)),
                                                   .permanent = IsPermanent(status)});
  if (!released.ok()) Log(fmt::format("releasing a lease: {}", Text(released)));  // it will expire
}

void Worker::Drop(ShardId shard, Fence fence) {
  keeper_->Remove(shard, fence);
  runs_.remove_if([&](const ShardRun& run) { return run.Is(shard, fence); });
}

void Worker::DrainLeases(absl::Duration patience) {
  const absl::Duration deadline = clock_.Elapsed() + patience;
  while (!runs_.empty() && clock_.Elapsed() < deadline) {
    std::optional<Event> event = events_.WaitPopUntil(clock_, std::min(deadline, clock_.Elapsed() + kTick));
    if (event.has_value()) std::visit([this](auto& e) { Handle(std::move(e)); }, *event);
  }
  // What is in the outbox is still sent, once: a commit with the row's last fence is accepted after the release too.
  outbox_->Abandon();
  for (const ShardRun& run : runs_) {
    Release(run, ReleaseReason::kDrain, absl::CancelledError("the worker was stopped"));
    keeper_->Remove(run.grant().shard, run.grant().fence);
  }
  runs_.clear();
}

void Worker::ReportLoad() {
  const absl::Duration now = clock_.Elapsed();
  if (engine_ == nullptr || now - load_since_ < absl::Seconds(1)) return;
  const int64_t tokens = engine_->counters().generated_tokens;
  const double rate =
      static_cast<double>(std::max<int64_t>(0, tokens - load_tokens_)) / absl::ToDoubleSeconds(now - load_since_);
  keeper_->SetLoad(static_cast<int64_t>(outbox_->size()), rate);
  load_since_ = now;
  load_tokens_ = tokens;
}

}  // namespace iha::worker
