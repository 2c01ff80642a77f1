// transition.h: the one way in which a shard's row changes state: machine first, then the guarded UPDATE.
#pragma once

#include "absl/status/status.h"
#include "coordinator/store/store.h"

namespace iha::coordinator {

// Moves `shard` (as just read in this transaction) by `event`. Internal when the machine forbids it (our bug), Aborted
// when the row has changed since. Not for kGrant: use WriteTxn::GrantShard through Grant below.
absl::Status Transition(WriteTxn& txn, const ShardRecord& shard, ShardEvent event,
                        absl::Time not_before = absl::UnixEpoch());

// Grants a PENDING shard: epoch + 1 in the same UPDATE, plus the attempt row. Returns the shard as it stands now.
absl::StatusOr<ShardRecord> Grant(WriteTxn& txn, const ShardRecord& shard, int64_t coordinator_incarnation,
                                  const WorkerId& worker, const RequestId& request, absl::Time now);

}  // namespace iha::coordinator
