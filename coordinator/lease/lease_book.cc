#include "coordinator/lease/lease_book.h"

namespace iha::coordinator {

void LeaseBook::Start(const Lease& lease) {
  if (lease.cancelled) cancelled_.insert(lease.job);
  Lease& entered = leases_[lease.shard] = lease;
  entered.cancelled = cancelled_.contains(lease.job);
}

void LeaseBook::Restore(Lease lease, absl::Duration now) {
  // Golden-ratio steps spread consecutive shard ids evenly over [0, 1) without any random state.
  const double step = static_cast<double>(static_cast<int64_t>(lease.shard)) * 0.6180339887498949;
  const double part = step - static_cast<double>(static_cast<int64_t>(step));
  lease.deadline = now + config_.ttl + part * config_.restart_spread;
  Start(lease);
}

bool LeaseBook::Renew(ShardId shard, const Fence& fence, const WorkerId& worker, absl::Duration now) {
  const auto it = leases_.find(shard);
  if (it == leases_.end() || it->second.fence != fence || it->second.worker != worker) return false;
  if (!it->second.cancelled) it->second.deadline = now + config_.ttl;
  return true;
}

void LeaseBook::End(ShardId shard, const Fence& fence) {
  const auto it = leases_.find(shard);
  if (it != leases_.end() && it->second.fence == fence) leases_.erase(it);
}

int LeaseBook::Cancel(const JobId& job) {
  cancelled_.insert(job);
  int marked = 0;
  for (auto& [shard, lease] : leases_) {
    if (lease.job != job) continue;
    lease.cancelled = true;
    ++marked;
  }
  return marked;
}

const Lease* LeaseBook::Find(ShardId shard) const {
  const auto it = leases_.find(shard);
  return it == leases_.end() ? nullptr : &it->second;
}

std::vector<Lease> LeaseBook::ExpiredAt(absl::Duration now) const {
  std::vector<Lease> expired;
  for (const auto& [shard, lease] : leases_) {
    if (lease.deadline <= now) expired.push_back(lease);
  }
  return expired;
}

}  // namespace iha::coordinator
