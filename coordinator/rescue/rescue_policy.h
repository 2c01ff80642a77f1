// rescue_policy.h: what happens to a shard whose attempt ended without finishing it. One pure decision.
//
// - drained by the worker itself: granted again, nothing charged;
// - bad data (permanent): no retry helps; split in half, down to the one bad item, which is quarantined;
// - several shards failed on one worker: the worker is to blame, it gets no more grants and the shards are refunded;
// - leases lost on two different workers: the shard is poison: split in half, down to one item, which is quarantined;
// - attempts used up: as poison;
// - else retry after a backoff that doubles, jittered by a hash (no random state, so a replay decides alike).
// Thread: any.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace iha::coordinator {

struct RescueConfig {
  absl::Duration backoff_base = absl::Milliseconds(500);
  absl::Duration backoff_max = absl::Minutes(1);
  int blame_shards = 3;    // distinct shards that failed on a worker since its last success
  int poison_workers = 2;  // distinct workers that lost the shard
};

enum class AttemptEnd { kLost, kFailed, kDrained };

struct RescueFacts {
  AttemptEnd end = AttemptEnd::kLost;
  bool permanent = false;  // kFailed: the worker says that no retry helps
  bool job_cancelled = false;
  int max_attempts = 3;
  int charged = 0;               // charged attempts before this one, refunds taken off
  int charged_elsewhere = 0;     // of these, charged on other workers than this one
  int losing_workers = 0;        // distinct workers that lost it, this end included, refunded ones left out
  int worker_failed_shards = 0;  // distinct shards failed on this worker since its last success, this one included
  int refunds = 0;               // refunds this shard has had
  int64_t missing_items = 0;
  uint64_t jitter = 0;  // hash of (shard, epoch)
};

enum class RescueAction { kRetry, kSplit, kQuarantine, kCancel };
const char* NameOf(RescueAction action);

struct RescueDecision {
  RescueAction action = RescueAction::kRetry;
  bool charge = false;
  bool blame_worker = false;  // no more grants to it; its failures since the last success are refunded
  absl::Duration backoff;     // kRetry: earliest next grant, counted from the end of the attempt
};

RescueDecision Decide(const RescueFacts& facts, const RescueConfig& config);

}  // namespace iha::coordinator
