// outbox.h: finished items on their way to the coordinator: generations first, then the commit that names them.
//
// Order matters (docs/contracts/commit.md): PutGenerations is unfenced and idempotent, CommitItems is fenced and refers
// to stored generations only. A generation that is stored with another text stays as it is: the item is graded anew
// from that text before it is committed. Retryable errors are retried here with the same request id until they succeed
// or the outbox is closed; what cannot be retried is reported as an ItemCommitted event, of the items that it concerns
// and of no others. One thread, owned by the object.
// Push blocks when the coordinator is slow (the queue is bounded): then the worker stops acquiring (`congested`).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/bounded_queue.h"
#include "common/clock.h"
#include "common/coordinator_api.h"
#include "worker/runner/events.h"

namespace iha::worker {

struct OutboxItem {
  ShardId shard{};
  Fence fence;
  JobId job;
  std::vector<Generation> generations;  // fresh ones only
  ItemResult result;
  // Grades `result` anew from texts that are stored already. Called on the outbox's thread.
  std::function<absl::Status(const std::vector<Generation>& stored, ItemResult& result)> regrade;
  std::optional<JobTelemetry> telemetry = std::nullopt;  // the worker's for this job, when the item was finished
};

class Outbox {
 public:
  // All must outlive the outbox. `stopped`: true once the program is ending; then nothing is retried any more.
  Outbox(WorkerApi& api, WorkerId worker, int64_t incarnation, Clock& clock, EventQueue& events,
         std::function<bool()> stopped);
  // Delivers what is queued, unless Abandon was called; joins the thread.
  ~Outbox();

  void Push(OutboxItem item) { queue_.WaitPush(std::move(item)); }
  bool congested() const { return queue_.congested(); }
  size_t size() const { return queue_.size(); }
  // Gives up on retries: what is not delivered now never will be (its generations are found again by key).
  void Abandon();

 private:
  void Loop();
  void Deliver(std::vector<OutboxItem> batch);
  // Puts the items' generations; an item whose generations differ from the stored ones is graded anew.
  absl::Status Put(std::span<OutboxItem> items);
  absl::StatusOr<std::vector<GenKey>> PutGenerations(std::span<const OutboxItem> items);
  absl::Status TakeStored(std::span<OutboxItem> items, const std::vector<GenKey>& divergent);
  void CommitShard(std::span<OutboxItem> items);
  void Report(const OutboxItem& item, absl::Status outcome, bool shard_done);
  template <class Call>
  absl::Status WithRetries(Call call);
  RequestId NextRequestId();

  WorkerApi& api_;
  const WorkerId worker_;
  const int64_t incarnation_;
  Clock& clock_;
  EventQueue& events_;
  const std::function<bool()> stopped_;
  BoundedQueue<OutboxItem> queue_;
  int64_t requests_ = 0;  // outbox thread only

  absl::Mutex mu_;
  bool abandoned_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace iha::worker
