#include "common/retry.h"

#include <algorithm>

#include "common/rng.h"

namespace iha {

bool IsRetryable(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable || status.code() == absl::StatusCode::kDeadlineExceeded ||
         status.code() == absl::StatusCode::kResourceExhausted;
}

absl::Duration Backoff(const BackoffPolicy& policy, int attempt, uint64_t key) {
  absl::Duration pause = std::min(policy.initial, policy.maximum);
  for (int i = 1; i < attempt && pause < policy.maximum; i++)
    pause = std::min(pause * policy.multiplier, policy.maximum);
  return pause * (1.0 - policy.jitter * UniformAt(key, static_cast<uint64_t>(attempt)));
}

}  // namespace iha
