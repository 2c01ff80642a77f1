// call_pool.h: threads that run the calls, so that gRPC's own threads never block. Bounded: when every thread is busy
// and the queue is full, new calls are refused (ResourceExhausted at the caller, who backs off).
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "common/bounded_queue.h"

namespace iha::coordinator {

class CallPool {
 public:
  explicit CallPool(int threads) : queue_(1024, 512) {
    for (int i = 0; i < threads; i++) {
      threads_.emplace_back([this] {
        while (auto call = queue_.WaitPop()) (*call)();
      });
    }
  }
  // Runs what is queued, then joins.
  ~CallPool() {
    queue_.Close();
    for (std::thread& thread : threads_) thread.join();
  }
  // False: full or closing.
  bool TryRun(std::function<void()> call) { return queue_.TryPush(std::move(call)) == PushResult::kOk; }

 private:
  BoundedQueue<std::function<void()>> queue_;
  std::vector<std::thread> threads_;
};

}  // namespace iha::coordinator
