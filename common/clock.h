// clock.h: time comes from an injected Clock, so that leases, retries and loops are tested without a sleep.
//
// Two scales that must not be mixed: Now() is wall time, for display and records, and may jump; Elapsed() is monotonic
// since an arbitrary origin, for every deadline and every measured span. Thread: any; waits block the caller only.
#pragma once

#include <functional>
#include <list>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace iha {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;
  virtual absl::Duration Elapsed() const = 0;

  // Waits, with `mu` held exclusively on entry and exit, until `cond` holds or Elapsed() >= deadline. Returns whether
  // `cond` holds on exit. `cond` is evaluated with `mu` held and must depend only on what `mu` guards.
  // InfiniteDuration() = no deadline.
  virtual bool AwaitUntil(absl::Mutex* mu, const std::function<bool()>& cond, absl::Duration deadline) = 0;
  // Waits until Elapsed() >= deadline.
  void SleepUntil(absl::Duration deadline);
};

class RealClock final : public Clock {
 public:
  absl::Time Now() const override;
  absl::Duration Elapsed() const override;
  bool AwaitUntil(absl::Mutex* mu, const std::function<bool()>& cond, absl::Duration deadline) override;
};

// Time stands still until Advance moves it; both scales move together. Waiters whose deadline has come wake up.
class SimulatedClock final : public Clock {
 public:
  explicit SimulatedClock(absl::Time start = absl::UnixEpoch()) : start_(start) {}
  SimulatedClock(const SimulatedClock&) = delete;
  SimulatedClock& operator=(const SimulatedClock&) = delete;
  ~SimulatedClock() override;  // nobody may be waiting

  absl::Time Now() const override;
  absl::Duration Elapsed() const override;
  bool AwaitUntil(absl::Mutex* mu, const std::function<bool()>& cond, absl::Duration deadline) override;

  // by >= 0. The caller must hold none of the mutexes that waiters wait on.
  void Advance(absl::Duration by);
  // Blocks (in real time) until `count` or more threads wait on this clock: a test knows that a loop is parked.
  void AwaitWaiters(int count);

 private:
  struct Waiter {
    absl::Mutex* mu = nullptr;
    absl::Duration deadline;
    bool expired = false;  // guarded by *mu
    int pins = 0;          // guarded by lock_: Advance is about to lock *mu
  };

  const absl::Time start_;
  mutable absl::Mutex lock_;  // taken after a waiter's mutex, never held while taking one
  absl::Duration elapsed_ ABSL_GUARDED_BY(lock_);
  std::list<Waiter> waiters_ ABSL_GUARDED_BY(lock_);
};

}  // namespace iha
