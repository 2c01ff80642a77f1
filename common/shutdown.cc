#include "common/shutdown.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

namespace iha {
namespace {

// SIGUSR1 to the watching thread ends it.
sigset_t WatchedSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&set, number);
  return set;
}

}  // namespace

ShutdownSignals::ShutdownSignals() {
  const sigset_t set = WatchedSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void ShutdownSignals::Watch(std::function<void()> on_first) {
  thread_ = std::thread([on_first = std::move(on_first)] {
    const sigset_t set = WatchedSignals();
    for (int count = 0;;) {
      int number = 0;
      if (sigwait(&set, &number) != 0) continue;
      if (number == SIGUSR1) return;
      if (++count > 1) _exit(130);
      on_first();
    }
  });
}

ShutdownSignals::~ShutdownSignals() {
  if (!thread_.joinable()) return;
  pthread_kill(thread_.native_handle(), SIGUSR1);
  thread_.join();
}

}  // namespace iha
