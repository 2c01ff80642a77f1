// events.h: what reaches the worker's loop from the engine, the outbox and the heartbeat; one queue, one reader.
#pragma once

#include <variant>
#include <vector>

#include "common/bounded_queue.h"
#include "common/coordinator_api.h"
#include "worker/engine/request.h"

namespace iha::worker {

// A sample's generation ended, well or not. From the engine's thread.
struct SampleDone {
  ShardId shard{};
  Fence fence;
  size_t item = 0;    // position in the shard's work list
  size_t sample = 0;  // or choice
  engine::GenerationResult result;
};

// The outbox delivered an item, or learnt that it cannot be. From the outbox's thread.
struct ItemCommitted {
  ShardId shard{};
  Fence fence;
  // OK, AlreadyExists: fine. Aborted, FailedPrecondition: the lease is over. OutOfRange: as RegradeFrom says.
  absl::Status outcome;
  bool shard_done = false;
};

// A heartbeat said that a lease is over. From the lease keeper's thread.
struct LeaseEnded {
  ShardId shard{};
  Fence fence;
};

// An item could not be graded. From a thread of the finisher.
struct ItemFailed {
  ShardId shard{};
  Fence fence;
  absl::Status status;
};

using Event = std::variant<SampleDone, ItemCommitted, LeaseEnded, ItemFailed>;
using EventQueue = BoundedQueue<Event>;

}  // namespace iha::worker
