// shard_run.h: one lease being worked on: its items, the generations it waits for, what it still owes.
//
// Belongs to the worker's loop thread; the engine's callbacks only post events.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "benchmarks/benchmark.h"
#include "common/coordinator_api.h"
#include "worker/engine/engine.h"
#include "worker/runner/events.h"
#include "worker/runner/item_finisher.h"
#include "worker/runner/item_work.h"
#include "worker/runner/model_source.h"

namespace iha::worker {

class ShardRun {
 public:
  explicit ShardRun(LeaseGrant grant) : grant_(std::make_shared<const LeaseGrant>(std::move(grant))) {}

  // `benchmark`: with the lease's items. Renders the missing items, fetches the generations that are known already and
  // submits the rest. Items that need no generation are finished at once. An error leaves nothing queued but what
  // Abandon cancels.
  absl::Status Start(WorkerApi& api, std::shared_ptr<const benchmarks::Benchmark> benchmark, const LoadedModel& model,
                     benchmarks::PromptEncoder& encoder, engine::Engine& engine, EventQueue& events,
                     ItemFinisher& finisher);
  // Takes a sample in; with the last one the item is finished, or asks for those that its open votes take. An error
  // fails the lease. `telemetry` goes along with that item.
  absl::Status OnSample(SampleDone done, JobTelemetry telemetry, engine::Engine& engine, EventQueue& events,
                        ItemFinisher& finisher);
  // Stops generating; results that still arrive are ignored by the caller (the lease is gone).
  void Abandon(engine::Engine& engine);

  const LeaseGrant& grant() const { return *grant_; }
  bool Is(ShardId shard, Fence fence) const { return grant_->shard == shard && grant_->fence == fence; }
  // Items handed to the outbox and answered.
  void OnCommitted() { committed_++; }
  bool AllCommitted() const { return committed_ == items_.size(); }
  // Samples that the engine still works on.
  int64_t waiting() const { return waiting_; }

 private:
  absl::Status FetchKnown(WorkerApi& api);
  // Finishes a complete item, submits what another still wants.
  absl::Status Proceed(size_t item, std::optional<JobTelemetry> telemetry, engine::Engine& engine, EventQueue& events,
                       ItemFinisher& finisher);
  absl::Status Submit(size_t item, engine::Engine& engine, EventQueue& events);
  // One request, whose result comes back as that of `sample`, or of that choice.
  absl::Status SubmitOne(size_t item, size_t sample, engine::GenerationRequest request, engine::Engine& engine,
                         EventQueue& events);

  const std::shared_ptr<const LeaseGrant> grant_;
  std::shared_ptr<const benchmarks::Benchmark> benchmark_;
  std::vector<int32_t> eos_;
  std::vector<ItemWork> items_;
  std::vector<engine::SequenceId> sequences_;
  int64_t waiting_ = 0;
  size_t committed_ = 0;
};

}  // namespace iha::worker
