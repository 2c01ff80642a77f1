// shutdown.h: SIGINT and SIGTERM as a call on an ordinary thread, for mains that must drain.
//
// Make one at the start of main, before any thread: it blocks both signals for the whole process and waits for them on
// a thread of its own. The first signal calls `on_first`; a second one ends the process at once (status 130).
#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace iha {

class ShutdownSignals {
 public:
  // Blocks the signals; nothing is called before Watch.
  ShutdownSignals();
  // on_first runs on the watching thread and must not block: the second signal waits behind it.
  void Watch(std::function<void()> on_first);
  // Afterwards on_first is not running and never will: call it before what on_first uses is destroyed. Idempotent.
  void Unwatch();
  ~ShutdownSignals();
  ShutdownSignals(const ShutdownSignals&) = delete;
  ShutdownSignals& operator=(const ShutdownSignals&) = delete;

 private:
  std::atomic<bool> unwatch_{false};
  std::thread thread_;
};

}  // namespace iha
