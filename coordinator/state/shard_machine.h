// shard_machine.h: the one place where a shard's state changes are decided (docs/contracts/lease.md).
//
//   PENDING --grant--> LEASED --finish--> DONE                 retry/drain: back to PENDING
//   a late commit by the row's current fence: PENDING --finish--> DONE
//   LEASED --split--> SPLIT    LEASED --quarantine--> QUARANTINED    PENDING, LEASED --cancel--> CANCELLED
//
// The store's trigger `shard_transition` repeats the table in SQL; a test compares the two over all states x events.
// Pure functions; thread: any.
#pragma once

#include <array>
#include <optional>
#include <string>

namespace iha::coordinator {

enum class ShardState { kPending, kLeased, kDone, kSplit, kQuarantined, kCancelled };
inline constexpr std::array kShardStates = {ShardState::kPending, ShardState::kLeased,      ShardState::kDone,
                                            ShardState::kSplit,   ShardState::kQuarantined, ShardState::kCancelled};

enum class ShardEvent {
  kGrant,       // a worker takes it; epoch + 1
  kCommit,      // some items landed, others are missing
  kFinish,      // the last missing item landed
  kRetry,       // lease expired, failed or released: to be granted again
  kSplit,       // two children take over its range
  kQuarantine,  // its missing items are given up, with a reason
  kCancel,      // its job was cancelled
};
inline constexpr std::array kShardEvents = {ShardEvent::kGrant, ShardEvent::kCommit, ShardEvent::kFinish,
                                            ShardEvent::kRetry, ShardEvent::kSplit,  ShardEvent::kQuarantine,
                                            ShardEvent::kCancel};

// The state after `event`, or nullopt when the event is illegal in `state`.
std::optional<ShardState> Next(ShardState state, ShardEvent event);

// All but PENDING and LEASED are final: INV-SHARD-2, a final shard never changes.
bool IsFinal(ShardState state);

const char* NameOf(ShardState state);  // "PENDING", ... as stored
const char* NameOf(ShardEvent event);  // "grant", ... for messages
std::optional<ShardState> ParseShardState(const std::string& name);

}  // namespace iha::coordinator
