// coordinator_api.h: the calls between workers, clients and the coordinator, in domain types.
//
// One vocabulary for three users: coordinator/ implements it (Coordinator), coordinator/rpc/ adapts it to gRPC through
// proto/codec, worker/link/ and cli/ call it. Every request carries a client-chosen id and can be repeated in every
// phase with the same effect (style.md 3.4); codes are actions (style.md 3.6).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/eval_types.h"
#include "common/ids.h"
#include "common/telemetry.h"

namespace iha {

// ---- worker side -----------------------------------------------------------------------------------------------

struct ModelOffer {
  std::string name;  // as in ModelRef::name
  Digest weights;
  Digest tokenizer;
  int64_t context_tokens = 0;
  bool operator==(const ModelOffer&) const = default;
};

// A worker introduces itself; a new incarnation gives up the old one's leases at once.
struct RegisterWorkerRequest {
  RequestId request_id;
  WorkerId worker;
  int64_t incarnation = 0;                // start time in ns; grows
  std::vector<std::string> numerics_ids;  // that it can run, bit for bit
  std::string description;                // host, device, ISA, threads: run record only
};
struct RegisterWorkerReply {
  int64_t coordinator_incarnation = 0;
  absl::Duration heartbeat_interval;
  std::vector<std::string> wanted_models;  // names of unfinished jobs: offer those you have
};

// Binds the digests of a model name (first offer wins) or learns that others are bound.
struct OfferModelsRequest {
  RequestId request_id;
  WorkerId worker;
  std::vector<ModelOffer> offers;
};
struct OfferModelsReply {
  std::vector<std::string> accepted;
  std::vector<std::string> refused;  // one line each: "model: has weights X, the sweep is bound to Y"
};

struct AcquireLeaseRequest {
  RequestId request_id;  // deduplicated while pending and after the grant
  WorkerId worker;
  int64_t incarnation = 0;
  std::vector<std::string> models;  // accepted and loadable; the first is loaded now and preferred
  std::vector<std::string> numerics_ids;
  std::vector<std::string> refused_benchmarks = {};  // that it can't serve: names; no shard of theirs is granted
};
struct LeaseGrant {
  ShardId shard{};
  Fence fence;
  absl::Duration ttl;  // counted by the worker from when it SENT the request
  JobId job_id;
  JobSpec job;
  ItemRange range;
  std::vector<int64_t> missing;  // item indices not committed yet, increasing
  Digest weights;
  Digest tokenizer;
};
struct AcquireLeaseReply {
  std::optional<LeaseGrant> grant;  // absent: nothing for this worker now
  absl::Duration retry_after;       // when absent
  bool all_done = false;            // no unfinished job is left at all: an embedded worker may exit
  std::vector<std::string> wanted_models;
};

enum class LeaseVerdict { kKeep = 1, kCancel, kLost };
struct HeartbeatRequest {
  RequestId request_id;
  WorkerId worker;
  int64_t incarnation = 0;
  struct Held {
    ShardId shard{};
    Fence fence;
  };
  std::vector<Held> leases;
  int64_t outbox_items = 0;
  double tokens_per_second = 0;  // since the last heartbeat; progress display only
};
struct HeartbeatReply {
  std::vector<LeaseVerdict> verdicts;  // one for each lease, in order
  absl::Duration ttl;
};

struct LookupGenerationsRequest {
  std::vector<GenKey> keys;
};
struct LookupGenerationsReply {
  std::vector<Generation> found;  // any order; bad checksums are misses
};

struct PutGenerationsRequest {  // content-addressed, unfenced, idempotent
  RequestId request_id;
  WorkerId worker;
  std::vector<Generation> generations;
};
struct PutGenerationsReply {
  std::vector<GenKey> divergent;  // equal key, other value: recorded in `divergence`, first write kept
};

struct CommitItemsRequest {  // fenced; one IMMEDIATE transaction
  RequestId request_id;
  WorkerId worker;
  ShardId shard{};
  Fence fence;
  JobId job_id;
  std::vector<ItemResult> items;
  // The worker's for this job: for the record, stored whatever becomes of the items.
  std::optional<JobTelemetry> telemetry = std::nullopt;
};
// Per item, in order: OK (stored or equal replay), AlreadyExists (another value stored first), Aborted (fence lost),
// FailedPrecondition (shard final, generation missing), InvalidArgument (malformed), Internal (other grades: try
// again).
struct CommitItemsReply {
  std::vector<absl::Status> outcomes;
  bool shard_done = false;
};

enum class ReleaseReason { kDrain = 1, kFailed, kUnfit };
struct ReleaseLeaseRequest {
  RequestId request_id;
  WorkerId worker;
  ShardId shard{};
  Fence fence;
  ReleaseReason reason = ReleaseReason::kDrain;  // kFailed alone is charged to the shard; kUnfit is noted in the sweep
  std::string error;                             // one line, for kFailed and kUnfit
  bool permanent = false;                        // kFailed: bad data, no retry helps (split to one item, quarantine)
};

// ---- client side -----------------------------------------------------------------------------------------------

struct JobProgress {
  JobId job;
  std::string model;
  std::string entry;  // canonical entry spec, for display
  std::string state;  // "waiting_for_model", "running", "done", "cancelled"
  int64_t planned = 0;
  int64_t scored = 0;
  int64_t unscored = 0;  // finished without a score (any reason)
};
struct SweepProgress {
  SweepId sweep;
  std::string state;  // "running", "done", "cancelled"
  std::vector<JobProgress> jobs;
  int64_t live_workers = 0;
  int64_t leased_shards = 0;
  double tokens_per_second = 0;
  std::vector<std::string> notes;  // one line each: model refused, shard quarantined, divergence
};
struct SweepSummary {
  SweepId sweep;
  std::string state;
  std::string run_tag;
  absl::Time submitted;
  int64_t planned = 0;
  int64_t finished = 0;
};

// Thread: any; methods may block on the store's writer thread. Implementations are idempotent as stated above.
class WorkerApi {
 public:
  virtual ~WorkerApi() = default;
  virtual absl::StatusOr<RegisterWorkerReply> RegisterWorker(const RegisterWorkerRequest& request) = 0;
  virtual absl::StatusOr<OfferModelsReply> OfferModels(const OfferModelsRequest& request) = 0;
  virtual absl::StatusOr<AcquireLeaseReply> AcquireLease(const AcquireLeaseRequest& request) = 0;
  virtual absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest& request) = 0;
  virtual absl::StatusOr<LookupGenerationsReply> LookupGenerations(const LookupGenerationsRequest& request) = 0;
  virtual absl::StatusOr<PutGenerationsReply> PutGenerations(const PutGenerationsRequest& request) = 0;
  virtual absl::StatusOr<CommitItemsReply> CommitItems(const CommitItemsRequest& request) = 0;
  virtual absl::Status ReleaseLease(const ReleaseLeaseRequest& request) = 0;
};

class ClientApi {
 public:
  virtual ~ClientApi() = default;
  virtual absl::StatusOr<SweepId> Submit(const SweepSpec& spec) = 0;  // twice = one sweep
  virtual absl::StatusOr<SweepProgress> Status(const SweepId& sweep) = 0;
  virtual absl::StatusOr<std::vector<SweepSummary>> List() = 0;
  virtual absl::Status Cancel(const SweepId& sweep) = 0;  // idempotent
  // The stored sweep rendered: layout generic|table1|table2, format md|csv|json, baseline = model name or "".
  virtual absl::StatusOr<std::string> Table(const SweepId& sweep, const std::string& layout,
                                            const std::string& baseline, const std::string& format) = 0;
};

}  // namespace iha
