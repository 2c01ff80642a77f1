// lease_keeper.h: keeps a worker's leases alive: one heartbeat for all of them, every interval.
//
// The reply says for each lease KEEP, CANCEL or LOST; the last two become LeaseEnded events and the lease is dropped
// from further heartbeats. A heartbeat that fails is repeated at the next interval: the store, not the clock, decides
// whether a late commit is accepted. One thread, owned by the object; the other methods may be called from any.
#pragma once

#include <thread>
#include <vector>

#include "common/clock.h"
#include "common/coordinator_api.h"
#include "worker/runner/events.h"

namespace iha::worker {

class LeaseKeeper {
 public:
  // All must outlive the keeper.
  LeaseKeeper(WorkerApi& api, WorkerId worker, int64_t incarnation, absl::Duration interval, Clock& clock,
              EventQueue& events);
  ~LeaseKeeper();

  void Add(ShardId shard, Fence fence);
  void Remove(ShardId shard, Fence fence);
  // Shown by the coordinator's progress; taken with the next heartbeat.
  void SetLoad(int64_t outbox_items, double tokens_per_second);
  // True once after a heartbeat was answered NotFound: register again.
  bool TakeNotRegistered();

 private:
  void Loop();
  void Beat();

  WorkerApi& api_;
  const WorkerId worker_;
  const int64_t incarnation_;
  const absl::Duration interval_;
  Clock& clock_;
  EventQueue& events_;
  int64_t beats_ = 0;  // keeper's thread only

  absl::Mutex mu_;
  std::vector<HeartbeatRequest::Held> held_ ABSL_GUARDED_BY(mu_);
  int64_t outbox_items_ ABSL_GUARDED_BY(mu_) = 0;
  double tokens_per_second_ ABSL_GUARDED_BY(mu_) = 0;
  bool not_registered_ ABSL_GUARDED_BY(mu_) = false;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace iha::worker
