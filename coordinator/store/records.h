// records.h: the store's rows as plain values. What a row means and who writes it stands in docs/contracts/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/eval_types.h"
#include "common/ids.h"
#include "common/telemetry.h"
#include "coordinator/state/shard_machine.h"

namespace iha::coordinator {

struct SweepRecord {
  SweepId id;
  SweepSpec spec;  // normalized
  absl::Time submitted;
};

struct JobRecord {
  JobId id;
  JobSpec spec;
  bool cancel_requested = false;
};

struct ShardRecord {
  ShardId id{};
  JobId job;
  ItemRange range;
  int64_t estimated_tokens = 0;
  ShardState state = ShardState::kPending;
  Fence fence;     // of the last grant; epoch 0 = never granted
  WorkerId owner;  // set exactly while LEASED
  absl::Time not_before;
  std::optional<ShardId> parent;  // the SPLIT shard it came from
};

// Planned, not yet stored.
struct NewShard {
  ItemRange range;
  int64_t estimated_tokens = 0;
  int64_t turn = 0;  // smaller ones of the sweep are granted before, over all its jobs; 0 without an item_order
};
struct NewJob {
  JobId id;
  JobSpec spec;
  std::vector<NewShard> shards;
};

// The append-only history of a shard's attempts: one row for the grant, one for its end, one for a refund.
enum class AttemptEvent { kGranted, kDone, kLost, kFailed, kDrained, kCancelled, kRefunded };
const char* NameOf(AttemptEvent event);  // "granted", ... as stored
struct AttemptRecord {
  ShardId shard{};
  Fence fence;
  WorkerId worker;
  AttemptEvent event = AttemptEvent::kGranted;
  RequestId request;   // of the grant; empty in other rows
  std::string reason;  // one line; never empty for kFailed, kLost, kRefunded
  absl::Time at;
  bool permanent = false;  // kFailed only: bad data, which no worker is to blame for
};

// Attempts that count against a shard: lost or failed, not refunded (INV-LEASE-2).
std::vector<AttemptRecord> Charged(const std::vector<AttemptRecord>& attempts);

struct WorkerRecord {
  WorkerId id;
  int64_t incarnation = 0;
  std::vector<std::string> numerics_ids;
  std::string description;
  std::string blamed;  // not empty: why this incarnation gets no more grants
};

// A model name's digests within one sweep; first offer wins.
struct ModelBinding {
  SweepId sweep;
  std::string model;
  Digest weights;
  Digest tokenizer;
  int64_t context_tokens = 0;
};

// A model that some unfinished job of a sweep needs.
struct OpenModel {
  SweepId sweep;
  ModelRef model;
};

enum class DivergenceKind {
  kGeneration,  // equal GenKey, other value
  kItem,        // an item's second result differs from the stored one
  kChecksum,    // a stored generation does not match its own checksum
};
const char* NameOf(DivergenceKind kind);
struct DivergenceRecord {
  DivergenceKind kind = DivergenceKind::kGeneration;
  std::string subject;  // GenKey hex, or "JOB/ITEM"
  WorkerId worker;
  Digest stored;
  Digest offered;
  absl::Time at;
};

// One cell of a finished job, computed by reports::Aggregate; keyed by (job, metric, grader version, items digest).
struct MetricValueRecord {
  JobId job;
  std::string metric;
  std::string grader_version;
  Digest items_digest;
  int64_t planned = 0;
  int64_t scored = 0;
  std::optional<double> value;  // absent: nothing was scored
  std::optional<double> low;    // interval, where the metric has one
  std::optional<double> high;
};
struct AverageRankRecord {
  SweepId sweep;
  int32_t model_index = 0;
  Digest items_digest;
  std::optional<double> value;  // absent: the model has no metric
};

// What one worker process did for one job; for the record only.
struct TelemetryRecord {
  JobId job;
  WorkerId worker;
  JobTelemetry telemetry;
};

struct JobCounts {
  int64_t scored = 0;
  int64_t unscored = 0;
  int64_t open_shards = 0;
  int64_t leased_shards = 0;
  int64_t quarantined_shards = 0;
};

}  // namespace iha::coordinator
