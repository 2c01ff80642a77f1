#include "common/clock.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "absl/time/clock.h"

namespace iha {

void Clock::SleepUntil(absl::Duration deadline) {
  absl::Mutex mu;
  const absl::MutexLock lock(&mu);
  AwaitUntil(
      &mu, [] { return false; }, deadline);
}

absl::Time RealClock::Now() const { return absl::Now(); }

absl::Duration RealClock::Elapsed() const {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

bool RealClock::AwaitUntil(absl::Mutex* mu, const std::function<bool()>& cond, absl::Duration deadline) {
  // Abseil's timed waits follow the wall clock; short legs bound what a jump of it can do to a monotonic deadline.
  constexpr absl::Duration kLeg = absl::Seconds(1);
  const absl::Condition condition(&cond, &std::function<bool()>::operator());
  while (true) {
    const absl::Duration left = deadline - Elapsed();
    if (left <= absl::ZeroDuration()) return cond();
    if (mu->AwaitWithTimeout(condition, std::min(left, kLeg))) return true;
  }
}

SimulatedClock::~SimulatedClock() {
  const absl::MutexLock lock(&lock_);
  if (!waiters_.empty()) {
    std::fputs("SimulatedClock destroyed while a thread waits on it\n", stderr);
    std::abort();
  }
}

absl::Time SimulatedClock::Now() const { return start_ + Elapsed(); }

absl::Duration SimulatedClock::Elapsed() const {
  const absl::MutexLock lock(&lock_);
  return elapsed_;
}

bool SimulatedClock::AwaitUntil(absl::Mutex* mu, const std::function<bool()>& cond,
                                absl::Duration deadline) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  while (true) {
    if (cond()) return true;
    std::list<Waiter>::iterator self;
    {
      const absl::MutexLock lock(&lock_);
      if (elapsed_ >= deadline) return false;
      self = waiters_.insert(waiters_.end(), Waiter{.mu = mu, .deadline = deadline});
    }
    const std::function<bool()> woken = [&cond, self] { return self->expired || cond(); };
    mu->Await(absl::Condition(&woken, &std::function<bool()>::operator()));
    lock_.Lock();
    if (self->pins > 0) {
      // Advance holds a pointer to our mutex and waits for it: let it through before this frame, or the owner of `mu`,
      // may go away. `cond` may change meanwhile, so the loop looks again.
      lock_.Unlock();
      mu->Unlock();
      const std::function<bool()> unpinned = [self] { return self->pins == 0; };
      lock_.LockWhen(absl::Condition(&unpinned, &std::function<bool()>::operator()));
      waiters_.erase(self);
      lock_.Unlock();
      mu->Lock();
      continue;
    }
    waiters_.erase(self);
    lock_.Unlock();
  }
}

void SimulatedClock::Advance(absl::Duration by) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  std::vector<std::list<Waiter>::iterator> due;
  {
    const absl::MutexLock lock(&lock_);
    elapsed_ += by;
    for (auto it = waiters_.begin(); it != waiters_.end(); ++it) {
      if (it->deadline > elapsed_) continue;
      it->pins++;
      due.push_back(it);
    }
  }
  for (const auto& waiter : due) {
    {
      const absl::MutexLock lock(waiter->mu);
      waiter->expired = true;
    }
    const absl::MutexLock lock(&lock_);
    waiter->pins--;
  }
}

void SimulatedClock::AwaitWaiters(int count) {
  const std::function<bool()> enough = [this, count]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return waiters_.size() >= static_cast<size_t>(count);
  };
  lock_.LockWhen(absl::Condition(&enough, &std::function<bool()>::operator()));
  lock_.Unlock();
}

}  // namespace iha
