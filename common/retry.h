// retry.h: when to try again, and after how long. Pure: the caller waits, on its Clock.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace iha {

// Codes that ask for the same call again with the same id (style.md 3.6): Unavailable, DeadlineExceeded,
// ResourceExhausted. Aborted is not among them: it asks for a step back.
bool IsRetryable(const absl::Status& status);

struct BackoffPolicy {
  absl::Duration initial = absl::Milliseconds(100);
  absl::Duration maximum = absl::Seconds(30);
  double multiplier = 2.0;  // >= 1
  double jitter = 0.5;      // [0, 1]: the share of the pause that is random
};

// Pause after failed attempt number `attempt` (from 1): p = min(maximum, initial * multiplier^(attempt-1)), then
// uniform in [p (1 - jitter), p]. `key` seeds the jitter (the same key and attempt give the same pause): take one per
// caller.
absl::Duration Backoff(const BackoffPolicy& policy, int attempt, uint64_t key);

// In the last words of a worker whose machine can't judge programs: starting it again there cures nothing.
inline constexpr char kRunsNoPrograms[] = "this worker runs no programs";

}  // namespace iha
