// item_finisher.h: items whose samples are all there: graded, and handed to the outbox.
//
// Grading that only looks at texts is done at once, on the caller's thread. Programs are run, which takes long and can
// be done side by side: the items of a greedy sweep have one sample each, and one after another they would leave all
// places to run but one idle. Those wait for `parallel` threads of the object; meanwhile the worker's loop goes on.
// Items then reach the outbox in the order in which they are done; what is stored does not depend on it.
// Finish belongs to the loop's thread and blocks while very many items wait.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "benchmarks/benchmark.h"
#include "common/bounded_queue.h"
#include "worker/runner/events.h"
#include "worker/runner/item_work.h"
#include "worker/runner/outbox.h"

namespace iha::worker {

class ItemFinisher {
 public:
  // `parallel`: programs at a time. The other two must outlive the object.
  ItemFinisher(Outbox& outbox, EventQueue& events, int parallel)
      : outbox_(outbox), events_(events), parallel_(parallel), queue_(kMostWaiting, kMostWaiting / 2) {}
  // Drops what no thread has begun, waits for the rest: as long as a program may run.
  ~ItemFinisher();

  // Takes a complete item. The error is that of its grading; of programs it comes as an ItemFailed event.
  // `telemetry` goes along with the item.
  absl::Status Finish(std::shared_ptr<const LeaseGrant> grant, std::shared_ptr<const benchmarks::Benchmark> benchmark,
                      ItemWork work, std::optional<JobTelemetry> telemetry);

 private:
  static constexpr size_t kMostWaiting = 1 << 16;

  void StartThreads();

  Outbox& outbox_;
  EventQueue& events_;
  const int parallel_;
  std::atomic<bool> ending_{false};
  BoundedQueue<std::function<void()>> queue_;
  std::vector<std::thread> threads_;  // none before the first program
};

}  // namespace iha::worker
