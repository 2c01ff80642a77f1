// shutdown.h: SIGINT and SIGTERM as a call on an ordinary thread, for mains that must drain.
//
// Make one at the start of main, before any thread: it blocks both signals for the whole process and waits for them on
// a thread of its own. The first signal calls `on_first`; a second one ends the process at once (status 130), also
// while `on_first` still runs. When the object goes, signals act as before it came.
#pragma once

#include <signal.h>

#include <atomic>
#include <functional>
#include <thread>

namespace iha {

class ShutdownSignals {
 public:
  // Blocks the signals; nothing is called before Watch. Make and destroy it on one thread.
  ShutdownSignals();
  // on_first runs once, on a thread of its own; it may block.
  void Watch(std::function<void()> on_first);
  // Waits for on_first if it runs; afterwards it never will: call it before what on_first uses is destroyed.
  // Idempotent.
  void Unwatch();
  ~ShutdownSignals();
  ShutdownSignals(const ShutdownSignals&) = delete;
  ShutdownSignals& operator=(const ShutdownSignals&) = delete;

 private:
  sigset_t before_{};
  std::atomic<bool> unwatch_{false};
  std::thread watcher_;
  std::thread first_;  // started by the watcher, joined after it
};

}  // namespace iha
