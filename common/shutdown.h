// shutdown.h: SIGINT and SIGTERM as a call on an ordinary thread, for mains that must drain.
//
// Make one at the start of main, before any thread: it blocks both signals for the whole process and waits for them on
// a thread of its own. The first signal calls `on_first`; a second one ends the process at once (status 130).
#pragma once

#include <functional>
#include <thread>

namespace iha {

class ShutdownSignals {
 public:
  // Blocks the signals; nothing is called before Watch.
  ShutdownSignals();
  // on_first may block; it runs on the watching thread.
  void Watch(std::function<void()> on_first);
  ~ShutdownSignals();
  ShutdownSignals(const ShutdownSignals&) = delete;
  ShutdownSignals& operator=(const ShutdownSignals&) = delete;

 private:
  std::thread thread_;
};

}  // namespace iha
