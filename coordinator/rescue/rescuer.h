// rescuer.h: applies RescuePolicy to an attempt that ended without finishing its shard, inside one transaction.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "coordinator/planner/benchmark_pool.h"
#include "coordinator/rescue/rescue_policy.h"
#include "coordinator/store/store.h"

namespace iha::coordinator {

struct EndedAttempt {
  ShardRecord shard;  // LEASED, as just read in this transaction
  AttemptEnd end = AttemptEnd::kLost;
  bool permanent = false;
  std::string reason;  // one line
  absl::Time at;       // when it ended; backoff counts from here
};

// Writes the attempt's end, refunds, children, quarantined item rows and the shard's new state.
// Thread: the store's writer. Errors: those of the store, and of opening the benchmark (quarantine needs item ids):
// then nothing was written yet. `wrote` (may be null) becomes true before the first write: an error after that must
// undo the transaction.
absl::StatusOr<RescueDecision> Rescue(WriteTxn& txn, const EndedAttempt& attempt, const RescueConfig& config,
                                      BenchmarkPool* pool, bool* wrote = nullptr);

// A row that says why an item has no score; every metric gets the same reason.
ItemResult UnscoredItem(const JobSpec& job, int64_t index, const std::string& item_id, Unscored reason);

}  // namespace iha::coordinator
