// bounded_queue.h: hand-over between threads with a high and a low water mark (style.md 3.5: every queue is bounded).
//
// At `high` elements the queue is congested: pushes are refused until it has drained to `low`, so that a producer which
// is told to wait is not called back for every single free place. Closing refuses pushes and lets pops drain the rest.
// Thread: any number of producers and consumers. Wait* block the caller, Try* never do. Order is first in, first out.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/clock.h"

namespace iha {

enum class PushResult { kOk, kFull, kClosed };

template <class T>
class BoundedQueue {
 public:
  // 0 <= low < high.
  BoundedQueue(size_t high, size_t low) : high_(high), low_(low) {}
  BoundedQueue(const BoundedQueue&) = delete;
  BoundedQueue& operator=(const BoundedQueue&) = delete;

  // Moves from `value` on kOk only; otherwise it stays the caller's, untouched.
  PushResult TryPush(T&& value) {
    const absl::MutexLock lock(&mu_);
    if (closed_) return PushResult::kClosed;
    if (congested_) return PushResult::kFull;
    items_.push_back(std::move(value));
    congested_ = items_.size() >= high_;
    return PushResult::kOk;
  }
  // Waits for room; false = closed, `value` untouched.
  bool WaitPush(T&& value) {
    const absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(this, &BoundedQueue::MayPush));
    if (closed_) return false;
    items_.push_back(std::move(value));
    congested_ = items_.size() >= high_;
    return true;
  }

  std::optional<T> TryPop() {
    const absl::MutexLock lock(&mu_);
    return PopLocked();
  }
  // nullopt = closed and drained.
  std::optional<T> WaitPop() {
    const absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(this, &BoundedQueue::MayPop));
    return PopLocked();
  }
  // nullopt = closed and drained, or `deadline` on clock.Elapsed() came first.
  std::optional<T> WaitPopUntil(Clock& clock, absl::Duration deadline) {
    const absl::MutexLock lock(&mu_);
    clock.AwaitUntil(
        &mu_, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return MayPop(); }, deadline);
    return PopLocked();
  }
  // Waits for one element, then takes up to `limit` without waiting again: one group commit. Empty = closed, drained.
  std::vector<T> WaitPopBatch(size_t limit) {
    const absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(this, &BoundedQueue::MayPop));
    std::vector<T> batch;
    while (batch.size() < limit && !items_.empty()) batch.push_back(*PopLocked());
    return batch;
  }

  void Close() {
    const absl::MutexLock lock(&mu_);
    closed_ = true;
  }
  size_t size() const {
    const absl::MutexLock lock(&mu_);
    return items_.size();
  }
  bool congested() const {
    const absl::MutexLock lock(&mu_);
    return congested_;
  }

 private:
  bool MayPush() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return closed_ || !congested_; }
  bool MayPop() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return closed_ || !items_.empty(); }
  std::optional<T> PopLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (items_.empty()) return std::nullopt;
    std::optional<T> value(std::move(items_.front()));
    items_.pop_front();
    if (items_.size() <= low_) congested_ = false;
    return value;
  }

  const size_t high_;
  const size_t low_;
  mutable absl::Mutex mu_;
  std::deque<T> items_ ABSL_GUARDED_BY(mu_);
  bool congested_ ABSL_GUARDED_BY(mu_) = false;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace iha
