#include "coordinator/state/shard_machine.h"

namespace iha::coordinator {
namespace {

struct Move {
  ShardState from;
  ShardEvent event;
  ShardState to;
};
using enum ShardState;
constexpr Move kMoves[] = {
    {kPending, ShardEvent::kGrant, kLeased},
    {kPending, ShardEvent::kCommit, kPending},  // the lease ran out, nobody has taken it over
    {kPending, ShardEvent::kFinish, kDone},
    {kPending, ShardEvent::kCancel, kCancelled},
    {kLeased, ShardEvent::kCommit, kLeased},
    {kLeased, ShardEvent::kFinish, kDone},
    {kLeased, ShardEvent::kRetry, kPending},
    {kLeased, ShardEvent::kSplit, kSplit},
    {kLeased, ShardEvent::kQuarantine, kQuarantined},
    {kLeased, ShardEvent::kCancel, kCancelled},
};

}  // namespace

std::optional<ShardState> Next(ShardState state, ShardEvent event) {
  for (const Move& move : kMoves) {
    if (move.from == state && move.event == event) return move.to;
  }
  return std::nullopt;
}

bool IsFinal(ShardState state) { return state != kPending && state != kLeased; }

const char* NameOf(ShardState state) {
  switch (state) {
    case kPending:
      return "PENDING";
    case kLeased:
      return "LEASED";
    case kDone:
      return "DONE";
    case kSplit:
      return "SPLIT";
    case kQuarantined:
      return "QUARANTINED";
    case kCancelled:
      return "CANCELLED";
  }
  return "?";
}

const char* NameOf(ShardEvent event) {
  switch (event) {
    case ShardEvent::kGrant:
      return "grant";
    case ShardEvent::kCommit:
      return "commit";
    case ShardEvent::kFinish:
      return "finish";
    case ShardEvent::kRetry:
      return "retry";
    case ShardEvent::kSplit:
      return "split";
    case ShardEvent::kQuarantine:
      return "quarantine";
    case ShardEvent::kCancel:
      return "cancel";
  }
  return "?";
}

std::optional<ShardState> ParseShardState(const std::string& name) {
  for (const ShardState state : kShardStates) {
    if (name == NameOf(state)) return state;
  }
  return std::nullopt;
}

}  // namespace iha::coordinator
