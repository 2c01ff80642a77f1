#include "worker/runner/lease_keeper.h"

#include <fmt/format.h>

#include <algorithm>

namespace iha::worker {

LeaseKeeper::LeaseKeeper(WorkerApi& api, WorkerId worker, int64_t incarnation, absl::Duration interval, Clock& clock,
                         EventQueue& events)
    : api_(api),
      worker_(std::move(worker)),
      incarnation_(incarnation),
      interval_(interval),
      clock_(clock),
      events_(events),
      thread_([this] { Loop(); }) {}

LeaseKeeper::~LeaseKeeper() {
  {
    const absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  thread_.join();
}

void LeaseKeeper::Add(ShardId shard, Fence fence) {
  const absl::MutexLock lock(&mu_);
  held_.push_back({.shard = shard, .fence = fence});
}

void LeaseKeeper::Remove(ShardId shard, Fence fence) {
  const absl::MutexLock lock(&mu_);
  std::erase_if(held_, [&](const auto& held) { return held.shard == shard && held.fence == fence; });
}

void LeaseKeeper::SetLoad(int64_t outbox_items, double tokens_per_second) {
  const absl::MutexLock lock(&mu_);
  outbox_items_ = outbox_items;
  tokens_per_second_ = tokens_per_second;
}

bool LeaseKeeper::TakeNotRegistered() {
  const absl::MutexLock lock(&mu_);
  return std::exchange(not_registered_, false);
}

void LeaseKeeper::Loop() {
  for (;;) {
    {
      const absl::MutexLock lock(&mu_);
      const absl::Duration next = clock_.Elapsed() + interval_;
      if (clock_.AwaitUntil(
              &mu_, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return stopping_; }, next)) {
        return;
      }
    }
    Beat();
  }
}

void LeaseKeeper::Beat() {
  HeartbeatRequest request;
  request.request_id = {fmt::format("{}.{}.beat.{}", worker_.value, incarnation_, beats_++)};
  request.worker = worker_;
  request.incarnation = incarnation_;
  {
    const absl::MutexLock lock(&mu_);
    request.leases = held_;
    request.outbox_items = outbox_items_;
    request.tokens_per_second = tokens_per_second_;
  }
  const absl::StatusOr<HeartbeatReply> reply = api_.Heartbeat(request);
  if (!reply.ok()) {
    const absl::MutexLock lock(&mu_);
    if (reply.status().code() == absl::StatusCode::kNotFound) not_registered_ = true;
    return;
  }
  for (size_t i = 0; i < std::min(reply->verdicts.size(), request.leases.size()); i++) {
    if (reply->verdicts[i] == LeaseVerdict::kKeep) continue;
    Remove(request.leases[i].shard, request.leases[i].fence);
    events_.WaitPush(LeaseEnded{.shard = request.leases[i].shard, .fence = request.leases[i].fence});
  }
}

}  // namespace iha::worker
