#include "common/shutdown.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

namespace iha {
namespace {

// How soon Unwatch is noticed.
constexpr timespec kPoll = {.tv_sec = 0, .tv_nsec = 100'000'000};

sigset_t WatchedSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

ShutdownSignals::ShutdownSignals() {
  const sigset_t set = WatchedSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void ShutdownSignals::Watch(std::function<void()> on_first) {
  thread_ = std::thread([this, on_first = std::move(on_first)] {
    const sigset_t set = WatchedSignals();
    for (int count = 0; !unwatch_.load();) {
      if (sigtimedwait(&set, nullptr, &kPoll) < 0) continue;  // nothing came
      if (++count > 1) _exit(130);
      on_first();
    }
  });
}

void ShutdownSignals::Unwatch() {
  unwatch_.store(true);
  if (thread_.joinable()) thread_.join();
}

ShutdownSignals::~ShutdownSignals() { Unwatch(); }

}  // namespace iha
