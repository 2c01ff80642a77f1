#include "coordinator/rescue/rescue_policy.h"

#include <algorithm>

namespace iha::coordinator {
namespace {

absl::Duration Backoff(int charged, uint64_t jitter, const RescueConfig& config) {
  absl::Duration base = config.backoff_base;
  for (int i = 1; i < charged && base < config.backoff_max; ++i) base *= 2;
  base = std::min(base, config.backoff_max);
  // Half to whole: retries of shards that failed together come apart.
  return base / 2 + (base / 2) * (static_cast<double>(jitter >> 40) / static_cast<double>(1 << 24));
}

RescueAction GiveUp(int64_t missing_items) {
  return missing_items > 1 ? RescueAction::kSplit : RescueAction::kQuarantine;
}

}  // namespace

const char* NameOf(RescueAction action) {
  switch (action) {
    case RescueAction::kRetry:
      return "retry";
    case RescueAction::kSplit:
      return "split";
    case RescueAction::kQuarantine:
      return "quarantine";
    case RescueAction::kCancel:
      return "cancel";
  }
  return "?";
}

RescueDecision Decide(const RescueFacts& facts, const RescueConfig& config) {
  RescueDecision decision;
  if (facts.job_cancelled) {
    decision.action = RescueAction::kCancel;
    return decision;
  }
  if (facts.end == AttemptEnd::kDrained) return decision;
  decision.charge = true;
  if (facts.end == AttemptEnd::kFailed && facts.permanent) {
    decision.action = GiveUp(facts.missing_items);
    return decision;
  }
  int charged = facts.charged + 1;
  // A shard is refunded at most max_attempts times, so that rescue always comes to an end.
  if (facts.end == AttemptEnd::kFailed && facts.worker_failed_shards >= config.blame_shards) {
    decision.blame_worker = true;
    if (facts.refunds < facts.max_attempts) charged = facts.charged_elsewhere;
  }
  if (facts.end == AttemptEnd::kLost && facts.losing_workers >= config.poison_workers) {
    decision.action = GiveUp(facts.missing_items);
    return decision;
  }
  if (charged >= facts.max_attempts) {
    decision.action = GiveUp(facts.missing_items);
    return decision;
  }
  decision.backoff = Backoff(charged, facts.jitter, config);
  return decision;
}

}  // namespace iha::coordinator
