// lease_book.h: when each lease runs out. Soft state: deadlines live here only, owners and epochs in the store.
//
// Heartbeats write nothing to disk. After a restart every live lease gets one full TTL plus a spread (style of etcd),
// so that a restart never expires a fleet at once. The book decides nothing: what has expired goes through the rescuer,
// and a commit is judged by its fence, never by the clock.
// Thread: not thread-safe; the Coordinator guards it with its mutex.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/ids.h"

namespace iha::coordinator {

struct LeaseConfig {
  absl::Duration ttl = absl::Seconds(30);
  absl::Duration heartbeat_interval = absl::Seconds(10);
  absl::Duration restart_spread = absl::Seconds(6);  // after a restart, deadlines fall in [ttl, ttl + spread)
};

struct Lease {
  ShardId shard{};
  JobId job;
  WorkerId worker;
  Fence fence;
  absl::Duration deadline;  // on Clock::Elapsed()
  bool cancelled = false;   // its job was cancelled: the next heartbeat says so
};

class LeaseBook {
 public:
  explicit LeaseBook(LeaseConfig config) : config_(config) {}

  // A grant was committed. Replaces what the book knew of the shard, but never forgets that the job was cancelled: the
  // cancel may have come between the grant's commit and this call.
  void Start(const Lease& lease);
  // A live lease found at start-up: deadline = now + ttl + this shard's part of the spread. `lease.deadline` is
  // ignored.
  void Restore(Lease lease, absl::Duration now);
  // Extends the lease if (shard, fence, worker) is live; false = lost. A cancelled lease is not extended.
  bool Renew(ShardId shard, const Fence& fence, const WorkerId& worker, absl::Duration now);
  // Forgets the lease if `fence` is still its fence.
  void End(ShardId shard, const Fence& fence);
  // Marks the job's leases, those that start later included; returns how many there are now.
  int Cancel(const JobId& job);

  const Lease* Find(ShardId shard) const;
  std::vector<Lease> ExpiredAt(absl::Duration now) const;  // deadline <= now, by shard
  size_t size() const { return leases_.size(); }
  const LeaseConfig& config() const { return config_; }

 private:
  const LeaseConfig config_;
  std::map<ShardId, Lease> leases_;
  std::set<JobId> cancelled_;
};

}  // namespace iha::coordinator
