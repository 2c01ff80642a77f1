// The worker's side of the Coordinator: registration, models, leases, results.
#include "common/errors.h"
#include "common/status_macros.h"
#include "coordinator/cache/generation_cache.h"
#include "coordinator/coordinator.h"
#include "coordinator/lease/transition.h"
#include "coordinator/model_binding.h"
#include "coordinator/rescue/rescuer.h"

namespace iha::coordinator {
namespace {

int64_t Raw(ShardId id) { return static_cast<int64_t>(id); }

// The worker as registered under this incarnation. NotFound = register (again); FailedPrecondition = a newer process of
// the same name is registered, this one must stop.
absl::StatusOr<WorkerRecord> RequireWorker(ReadTxn& txn, const WorkerId& id, std::optional<int64_t> incarnation) {
  IHA_ASSIGN_OR_RETURN(const std::optional<WorkerRecord> worker, txn.FindWorker(id));
  if (!worker.has_value()) return NotFound("worker {}: not registered here; register first", id.value);
  if (!incarnation.has_value() || worker->incarnation == *incarnation) return *worker;
  if (worker->incarnation < *incarnation) return NotFound("worker {}: new incarnation; register first", id.value);
  return FailedPrecondition(
      "worker {}: a newer process is registered under this name; stop this one, or give it "
      "another name",
      id.value);
}

absl::Status RequireIds(const WorkerId& worker, const RequestId& request) {
  if (worker.value.empty()) return InvalidArgument("worker: empty id");
  if (request.value.empty()) return InvalidArgument("request_id: empty; every call needs one of its own");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RegisterWorkerReply> Coordinator::RegisterWorker(const RegisterWorkerRequest& request) {
  IHA_RETURN_IF_ERROR(RequireIds(request.worker, request.request_id));
  RegisterWorkerReply reply{.coordinator_incarnation = incarnation_,
                            .heartbeat_interval = config_.lease.heartbeat_interval,
                            .wanted_models = {}};
  std::vector<ShardRecord> given_up;
  bool joined = false;
  IHA_RETURN_IF_ERROR(store_.Write([&](WriteTxn& txn) -> absl::Status {
    given_up.clear();
    IHA_ASSIGN_OR_RETURN(const std::optional<WorkerRecord> known, txn.FindWorker(request.worker));
    if (known.has_value() && known->incarnation > request.incarnation) {
      return FailedPrecondition(
          "worker {}: a newer process is registered under this name; stop this one, or give it "
          "another name",
          request.worker.value);
    }
    const bool restarted = known.has_value() && known->incarnation < request.incarnation;
    if (restarted) {
      IHA_ASSIGN_OR_RETURN(const std::vector<ShardRecord> leased, txn.LeasedShards());
      for (const ShardRecord& shard : leased) {
        if (shard.owner != request.worker) continue;
        const EndedAttempt ended{.shard = shard,
                                 .end = AttemptEnd::kLost,
                                 .permanent = false,
                                 .reason = "the worker process was started anew",
                                 .at = clock_.Now()};
        bool wrote = false;
        const absl::Status rescued = Rescue(txn, ended, config_.rescue, &benchmarks_, &wrote).status();
        if (!rescued.ok() && wrote) return rescued;  // half a rescue must not be committed
        // What cannot be rescued now stays leased to nobody alive and runs out by itself.
        if (rescued.ok()) given_up.push_back(shard);
      }
    }
    joined = !known.has_value() || restarted;
    if (joined) {
      IHA_RETURN_IF_ERROR(txn.UpsertWorker({.id = request.worker,
                                            .incarnation = request.incarnation,
                                            .numerics_ids = request.numerics_ids,
                                            .description = request.description,
                                            .blamed = ""}));
    }
    IHA_ASSIGN_OR_RETURN(const OpenWork work, txn.FindOpenWork(OnlySweep(), {}));
    reply.wanted_models = work.models;
    return absl::OkStatus();
  }));
  if (joined) Tell("worker {}: joined: {}", request.worker.value, request.description);
  absl::MutexLock lock(&mu_);
  for (const ShardRecord& shard : given_up) book_.End(shard.id, shard.fence);
  if (!given_up.empty()) values_due_ = true;  // a quarantine may have been a job's last step
  seen_[request.worker] = {.at = clock_.Elapsed(), .tokens_per_second = 0};
  return reply;
}

absl::StatusOr<OfferModelsReply> Coordinator::OfferModels(const OfferModelsRequest& request) {
  IHA_RETURN_IF_ERROR(RequireIds(request.worker, request.request_id));
  OfferModelsReply reply;
  IHA_RETURN_IF_ERROR(store_.Write([&](WriteTxn& txn) -> absl::Status {
    IHA_RETURN_IF_ERROR(RequireWorker(txn, request.worker, std::nullopt).status());
    std::vector<ModelBinding> offers;
    for (const ModelOffer& offer : request.offers) {
      IHA_RETURN_IF_ERROR(ValidateModelName(offer.name));
      if (offer.weights.empty() || offer.tokenizer.empty()) {
        return InvalidArgument("model {}: offered without a weights and a tokenizer digest", offer.name);
      }
      offers.push_back({.sweep = {},
                        .model = offer.name,
                        .weights = offer.weights,
                        .tokenizer = offer.tokenizer,
                        .context_tokens = offer.context_tokens});
      IHA_RETURN_IF_ERROR(txn.RecordOffer(request.worker, offers.back()));
    }
    IHA_ASSIGN_OR_RETURN(reply, BindOffers(txn, offers, OnlySweep()));
    return absl::OkStatus();
  }));
  return reply;
}

absl::StatusOr<LeaseGrant> Coordinator::DescribeGrant(WriteTxn& txn, const ShardRecord& shard) {
  IHA_ASSIGN_OR_RETURN(const std::optional<JobRecord> job, txn.FindJob(shard.job));
  if (!job.has_value()) return Internal("shard {}: its job is missing", Raw(shard.id));
  LeaseGrant grant{.shard = shard.id,
                   .fence = shard.fence,
                   .ttl = config_.lease.ttl,
                   .job_id = job->id,
                   .job = job->spec,
                   .range = shard.range,
                   .missing = {},
                   .weights = {},
                   .tokenizer = {}};
  IHA_ASSIGN_OR_RETURN(grant.missing, txn.MissingItems(job->id, shard.range));
  IHA_ASSIGN_OR_RETURN(const std::vector<ModelBinding> bindings, txn.Bindings(job->spec.sweep));
  for (const ModelBinding& binding : bindings) {
    if (binding.model != job->spec.model.name) continue;
    grant.weights = binding.weights;
    grant.tokenizer = binding.tokenizer;
  }
  return grant;
}

absl::Status Coordinator::GrantIn(WriteTxn& txn, const AcquireLeaseRequest& request, AcquireLeaseReply* reply) {
  *reply = {};
  IHA_ASSIGN_OR_RETURN(const WorkerRecord worker, RequireWorker(txn, request.worker, request.incarnation));
  if (!worker.blamed.empty()) {
    return FailedPrecondition("worker {}: drained: {}; fix the cause and start it again", request.worker.value,
                              worker.blamed);
  }
  // A repeated request gets the grant of the first one, or nothing when that lease has ended meanwhile: one id never
  // names two leases.
  IHA_ASSIGN_OR_RETURN(const std::optional<AttemptRecord> before, txn.FindGrant(request.worker, request.request_id));
  std::optional<ShardRecord> granted;
  if (before.has_value()) {
    IHA_ASSIGN_OR_RETURN(const std::optional<ShardRecord> shard, txn.FindShard(before->shard));
    if (shard.has_value() && shard->state == ShardState::kLeased && shard->fence == before->fence) granted = shard;
  } else {
    IHA_ASSIGN_OR_RETURN(const std::vector<ModelBinding> offers, txn.Offers(request.worker));
    IHA_RETURN_IF_ERROR(BindOffers(txn, offers, OnlySweep()).status());  // sweeps submitted since the offer
    IHA_ASSIGN_OR_RETURN(const std::optional<ShardId> id,
                         txn.PickShard({.worker = request.worker,
                                        .models = request.models,
                                        .numerics_ids = request.numerics_ids,
                                        .now = clock_.Now(),
                                        .only = OnlySweep(),
                                        .refused_benchmarks = request.refused_benchmarks}));
    if (id.has_value()) {
      IHA_ASSIGN_OR_RETURN(const std::optional<ShardRecord> shard, txn.FindShard(*id));
      if (!shard.has_value()) return Internal("shard {}: picked, but gone", Raw(*id));
      IHA_ASSIGN_OR_RETURN(granted, Grant(txn, *shard, incarnation_, request.worker, request.request_id, clock_.Now()));
    }
  }
  if (granted.has_value()) {
    IHA_ASSIGN_OR_RETURN(reply->grant, DescribeGrant(txn, *granted));
  }
  IHA_ASSIGN_OR_RETURN(const OpenWork work, txn.FindOpenWork(OnlySweep(), request.refused_benchmarks));
  reply->wanted_models = work.models;
  reply->all_done = !work.any;
  if (!reply->grant.has_value() && !before.has_value()) {
    // A shard that is to be had already is not for this worker: it need not hurry.
    const absl::Duration next = work.next_retry - clock_.Now();
    reply->retry_after = next > absl::ZeroDuration() ? std::min(next, config_.idle_retry) : config_.idle_retry;
  }
  return absl::OkStatus();
}

absl::StatusOr<AcquireLeaseReply> Coordinator::AcquireLease(const AcquireLeaseRequest& request) {
  IHA_RETURN_IF_ERROR(RequireIds(request.worker, request.request_id));
  const absl::Duration received = clock_.Elapsed();
  RescueExpired().IgnoreError();  // Tick reports it; this worker is not to suffer from another's shard
  AcquireLeaseReply reply;
  IHA_RETURN_IF_ERROR(store_.Write([&](WriteTxn& txn) { return GrantIn(txn, request, &reply); }));
  absl::MutexLock lock(&mu_);
  seen_[request.worker].at = received;
  if (reply.grant.has_value()) {
    const LeaseGrant& grant = *reply.grant;
    const Lease* known = book_.Find(grant.shard);
    // A later grant of the same shard may have been entered by another thread first.
    if (known == nullptr || known->fence <= grant.fence) {
      book_.Start({.shard = grant.shard,
                   .job = grant.job_id,
                   .worker = request.worker,
                   .fence = grant.fence,
                   .deadline = received + config_.lease.ttl,
                   .cancelled = false});
    }
  }
  return reply;
}

absl::StatusOr<HeartbeatReply> Coordinator::Heartbeat(const HeartbeatRequest& request) {
  IHA_RETURN_IF_ERROR(RequireIds(request.worker, request.request_id));
  RescueExpired().IgnoreError();  // Tick reports it; this worker is not to suffer from another's shard
  IHA_RETURN_IF_ERROR(
      store_.Read([&](ReadTxn& txn) { return RequireWorker(txn, request.worker, request.incarnation).status(); }));
  HeartbeatReply reply{.verdicts = {}, .ttl = config_.lease.ttl};
  absl::MutexLock lock(&mu_);
  const absl::Duration now = clock_.Elapsed();
  seen_[request.worker] = {.at = now, .tokens_per_second = request.tokens_per_second};
  for (const HeartbeatRequest::Held& held : request.leases) {
    if (!book_.Renew(held.shard, held.fence, request.worker, now)) {
      reply.verdicts.push_back(LeaseVerdict::kLost);
    } else {
      reply.verdicts.push_back(book_.Find(held.shard)->cancelled ? LeaseVerdict::kCancel : LeaseVerdict::kKeep);
    }
  }
  return reply;
}

absl::StatusOr<LookupGenerationsReply> Coordinator::LookupGenerations(const LookupGenerationsRequest& request) {
  CacheLookup lookup;
  IHA_RETURN_IF_ERROR(store_.Read([&](ReadTxn& txn) -> absl::Status {
    IHA_ASSIGN_OR_RETURN(lookup, coordinator::LookupGenerations(txn, request.keys));
    return absl::OkStatus();
  }));
  if (!lookup.corrupt.empty()) {
    IHA_RETURN_IF_ERROR(store_.Write([&](WriteTxn& txn) { return RecordCorrupt(txn, lookup.corrupt, clock_.Now()); }));
  }
  return LookupGenerationsReply{.found = std::move(lookup.found)};
}

absl::StatusOr<PutGenerationsReply> Coordinator::PutGenerations(const PutGenerationsRequest& request) {
  IHA_RETURN_IF_ERROR(RequireIds(request.worker, request.request_id));
  for (const Generation& generation : request.generations) {
    if (generation.finish == FinishReason::kUnspecified || generation.prompt_tokens < 0) {
      return InvalidArgument("generation {}: only finished generations are stored", generation.key.Hex());
    }
  }
  PutGenerationsReply reply;
  IHA_RETURN_IF_ERROR(store_.TryWrite([&](WriteTxn& txn) -> absl::Status {
    IHA_ASSIGN_OR_RETURN(reply.divergent,
                         coordinator::PutGenerations(txn, request.worker, request.generations, clock_.Now()));
    return absl::OkStatus();
  }));
  return reply;
}

absl::StatusOr<CommitItemsReply> Coordinator::CommitItems(const CommitItemsRequest& request) {
  IHA_RETURN_IF_ERROR(RequireIds(request.worker, request.request_id));
  IHA_ASSIGN_OR_RETURN(CommitItemsReply reply, ingest_.Commit(request));
  if (reply.shard_done) {
    absl::MutexLock lock(&mu_);
    book_.End(request.shard, request.fence);
    values_due_ = true;
  }
  return reply;
}

// A sweep whose shards nobody is fit for waits: its notes say what for.
absl::Status Coordinator::NoteUnfit(const ReleaseLeaseRequest& request) {
  return store_.Write([&](WriteTxn& txn) -> absl::Status {
    IHA_ASSIGN_OR_RETURN(const std::optional<ShardRecord> shard, txn.FindShard(request.shard));
    if (!shard.has_value()) return absl::OkStatus();
    IHA_ASSIGN_OR_RETURN(const std::optional<JobRecord> job, txn.FindJob(shard->job));
    if (!job.has_value()) return absl::OkStatus();
    return txn.AddNote(job->spec.sweep, fmt::format("worker {}: {}", request.worker.value, request.error));
  });
}

absl::Status Coordinator::ReleaseLease(const ReleaseLeaseRequest& request) {
  IHA_RETURN_IF_ERROR(RequireIds(request.worker, request.request_id));
  const bool drained = request.reason != ReleaseReason::kFailed;
  if (request.reason == ReleaseReason::kUnfit) IHA_RETURN_IF_ERROR(NoteUnfit(request));
  std::string reason = request.error;
  if (reason.empty()) reason = drained ? "released by the worker" : "failed without a message";
  return RescueOne({.shard = request.shard,
                    .job = {},
                    .worker = request.worker,
                    .fence = request.fence,
                    .deadline = {},
                    .cancelled = false},
                   drained ? AttemptEnd::kDrained : AttemptEnd::kFailed, request.permanent, reason, clock_.Now());
}

}  // namespace iha::coordinator
