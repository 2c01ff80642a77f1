// Tells ThreadSanitizer about absl::Mutex. Debian's Abseil is built without it, so a lock would look like no lock and
// every guarded field like a race. Part of IHA_SANITIZE=thread builds only: the linker's --wrap (IhaOptions.cmake)
// sends our calls here. Between pre_ and post_ the sanitizer ignores the thread's accesses, which covers the conditions
// that Abseil evaluates on behalf of others.
#include <sanitizer/tsan_interface.h>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

using absl::Condition;
using absl::CondVar;
using absl::Duration;
using absl::Mutex;
using absl::Time;

namespace {

// The caller holds `mu`, gives it up inside `wait`, and holds it again afterwards.
template <class Wait>
auto Waiting(Mutex* mu, Wait wait) {
  __tsan_mutex_pre_unlock(mu, 0);
  __tsan_mutex_post_unlock(mu, 0);
  __tsan_mutex_pre_lock(mu, 0);
  const auto result = wait();
  __tsan_mutex_post_lock(mu, 0, 0);
  return result;
}

}  // namespace

// Names are those of Debian's inline namespace; a newer Abseil needs new ones, and fails to link until it has them.
#define IHA_REAL(name) __real__ZN4absl7debian3##name
#define IHA_WRAP(name) __wrap__ZN4absl7debian3##name

extern "C" {

void IHA_REAL(5Mutex4LockEv)(Mutex* mu);
void IHA_WRAP(5Mutex4LockEv)(Mutex* mu) {
  __tsan_mutex_pre_lock(mu, 0);
  IHA_REAL(5Mutex4LockEv)(mu);
  __tsan_mutex_post_lock(mu, 0, 0);
}

void IHA_REAL(5Mutex6UnlockEv)(Mutex* mu);
void IHA_WRAP(5Mutex6UnlockEv)(Mutex* mu) {
  __tsan_mutex_pre_unlock(mu, 0);
  IHA_REAL(5Mutex6UnlockEv)(mu);
  __tsan_mutex_post_unlock(mu, 0);
}

bool IHA_REAL(5Mutex7TryLockEv)(Mutex* mu);
bool IHA_WRAP(5Mutex7TryLockEv)(Mutex* mu) {
  __tsan_mutex_pre_lock(mu, __tsan_mutex_try_lock);
  const bool locked = IHA_REAL(5Mutex7TryLockEv)(mu);
  __tsan_mutex_post_lock(mu, __tsan_mutex_try_lock | (locked ? 0 : __tsan_mutex_try_lock_failed), 0);
  return locked;
}

void IHA_REAL(5Mutex10ReaderLockEv)(Mutex* mu);
void IHA_WRAP(5Mutex10ReaderLockEv)(Mutex* mu) {
  __tsan_mutex_pre_lock(mu, __tsan_mutex_read_lock);
  IHA_REAL(5Mutex10ReaderLockEv)(mu);
  __tsan_mutex_post_lock(mu, __tsan_mutex_read_lock, 0);
}

void IHA_REAL(5Mutex12ReaderUnlockEv)(Mutex* mu);
void IHA_WRAP(5Mutex12ReaderUnlockEv)(Mutex* mu) {
  __tsan_mutex_pre_unlock(mu, __tsan_mutex_read_lock);
  IHA_REAL(5Mutex12ReaderUnlockEv)(mu);
  __tsan_mutex_post_unlock(mu, __tsan_mutex_read_lock);
}

void IHA_REAL(5Mutex8LockWhenERKNS0_9ConditionE)(Mutex* mu, const Condition& cond);
void IHA_WRAP(5Mutex8LockWhenERKNS0_9ConditionE)(Mutex* mu, const Condition& cond) {
  __tsan_mutex_pre_lock(mu, 0);
  IHA_REAL(5Mutex8LockWhenERKNS0_9ConditionE)(mu, cond);
  __tsan_mutex_post_lock(mu, 0, 0);
}

void IHA_REAL(5Mutex5AwaitERKNS0_9ConditionE)(Mutex* mu, const Condition& cond);
void IHA_WRAP(5Mutex5AwaitERKNS0_9ConditionE)(Mutex* mu, const Condition& cond) {
  Waiting(mu, [&] {
    IHA_REAL(5Mutex5AwaitERKNS0_9ConditionE)(mu, cond);
    return true;
  });
}

bool IHA_REAL(5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE)(Mutex* mu, const Condition& cond, Duration t);
bool IHA_WRAP(5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE)(Mutex* mu, const Condition& cond, Duration t) {
  return Waiting(mu, [&] { return IHA_REAL(5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE)(mu, cond, t); });
}

bool IHA_REAL(5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE)(Mutex* mu, const Condition& cond, Time t);
bool IHA_WRAP(5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE)(Mutex* mu, const Condition& cond, Time t) {
  return Waiting(mu, [&] { return IHA_REAL(5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE)(mu, cond, t); });
}

void IHA_REAL(5MutexD1Ev)(Mutex* mu);
void IHA_WRAP(5MutexD1Ev)(Mutex* mu) {
  __tsan_mutex_destroy(mu, 0);
  IHA_REAL(5MutexD1Ev)(mu);
}

void IHA_REAL(7CondVar4WaitEPNS0_5MutexE)(CondVar* cv, Mutex* mu);
void IHA_WRAP(7CondVar4WaitEPNS0_5MutexE)(CondVar* cv, Mutex* mu) {
  Waiting(mu, [&] {
    IHA_REAL(7CondVar4WaitEPNS0_5MutexE)(cv, mu);
    return true;
  });
}

bool IHA_REAL(7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE)(CondVar* cv, Mutex* mu, Duration t);
bool IHA_WRAP(7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE)(CondVar* cv, Mutex* mu, Duration t) {
  return Waiting(mu, [&] { return IHA_REAL(7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE)(cv, mu, t); });
}

bool IHA_REAL(7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE)(CondVar* cv, Mutex* mu, Time t);
bool IHA_WRAP(7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE)(CondVar* cv, Mutex* mu, Time t) {
  return Waiting(mu, [&] { return IHA_REAL(7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE)(cv, mu, t); });
}

}  // extern "C"
