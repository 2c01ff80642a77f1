#include "coordinator/lease/transition.h"

#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::coordinator {
namespace {

absl::Status Illegal(const ShardRecord& shard, ShardEvent event) {
  return Internal("INV-SHARD-2: shard {} is {}: event {} is illegal", static_cast<int64_t>(shard.id),
                  NameOf(shard.state), NameOf(event));
}

}  // namespace

absl::Status Transition(WriteTxn& txn, const ShardRecord& shard, ShardEvent event, absl::Time not_before) {
  const std::optional<ShardState> to = Next(shard.state, event);
  if (!to.has_value() || event == ShardEvent::kGrant) return Illegal(shard, event);
  return txn.MoveShard(shard, *to, not_before);
}

absl::StatusOr<ShardRecord> Grant(WriteTxn& txn, const ShardRecord& shard, int64_t coordinator_incarnation,
                                  const WorkerId& worker, const RequestId& request, absl::Time now) {
  const std::optional<ShardState> to = Next(shard.state, ShardEvent::kGrant);
  if (!to.has_value()) return Illegal(shard, ShardEvent::kGrant);
  ShardRecord granted = shard;
  granted.state = *to;
  granted.owner = worker;
  granted.fence = {.incarnation = coordinator_incarnation, .epoch = shard.fence.epoch + 1};
  IHA_RETURN_IF_ERROR(txn.GrantShard(shard, granted.fence, worker));
  IHA_RETURN_IF_ERROR(txn.AppendAttempt({.shard = shard.id,
                                         .fence = granted.fence,
                                         .worker = worker,
                                         .event = AttemptEvent::kGranted,
                                         .request = request,
                                         .reason = "",
                                         .at = now}));
  return granted;
}

}  // namespace iha::coordinator
