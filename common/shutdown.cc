#include "common/shutdown.h"

#include <pthread.h>
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
  pthread_sigmask(SIG_BLOCK, &set, &before_);
}

void ShutdownSignals::Watch(std::function<void()> on_first) {
  watcher_ = std::thread([this, on_first = std::move(on_first)]() mutable {
    const sigset_t set = WatchedSignals();
    while (!unwatch_.load()) {
      if (sigtimedwait(&set, nullptr, &kPoll) < 0) continue;  // nothing came
      if (first_.joinable()) _exit(130);
      first_ = std::thread(std::move(on_first));
    }
  });
}

void ShutdownSignals::Unwatch() {
  unwatch_.store(true);
  if (watcher_.joinable()) watcher_.join();
  if (first_.joinable()) first_.join();
}

ShutdownSignals::~ShutdownSignals() {
  Unwatch();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace iha
