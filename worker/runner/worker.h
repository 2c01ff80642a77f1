// worker.h: a worker's life: register, offer models, pull leases, generate, grade, commit; drain when told to stop.
//
//   coordinator <- LeaseKeeper (heartbeats) | Outbox (generations, commits) | loop (register, offer, acquire, release)
//   engine thread -> events -> loop -> outbox
//
// The loop thread (the caller of Run) owns every ShardRun; the other threads only post events to it. One model is
// loaded at a time; a second lease is pulled while the first still fills the batch, for the loaded model only. Errors
// of Run: Unavailable (the coordinator could not be reached until the deadline of the calls), FailedPrecondition /
// InvalidArgument (every wanted model of ours was refused or is bad: said line by line).
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/coordinator_api.h"
#include "worker/engine/engine.h"
#include "worker/runner/events.h"
#include "worker/runner/item_finisher.h"
#include "worker/runner/lease_keeper.h"
#include "worker/runner/model_source.h"
#include "worker/runner/outbox.h"
#include "worker/runner/shard_run.h"
#include "worker/runner/telemetry_ledger.h"

namespace iha::worker {

struct WorkerOptions {
  WorkerId id;
  int64_t incarnation = 0;
  std::string description;  // host, device, threads: for the coordinator's record
  std::string data_root;
  std::shared_ptr<benchmarks::Graders> graders;  // null: none that need another process
  engine::EngineOptions engine;
  // End when the coordinator has no unfinished job left; FailedPrecondition when jobs are left and none of their models
  // can be served here (an embedded run must not wait for ever).
  bool exit_when_done = false;
  size_t max_leases = 2;
  absl::Duration drain = absl::Seconds(20);  // after Stop: time for what the engine has begun; then it is released
  std::string cache_dir;                     // for items that follow from a checkpoint's tokenizer; "" = nowhere
  int threads = 1;                           // to make them with
  std::function<void(const std::string& line)> log;  // one human-readable line
};

class Worker {
 public:
  // All must outlive the worker.
  Worker(WorkerApi& api, ModelSource& models, Clock& clock, WorkerOptions options);

  absl::Status Run();
  // Drain: stop acquiring, finish what the engine has begun within options.drain, release the rest uncharged, return
  // OK. Any thread; safe in a signal handler.
  void Stop() { stopping_.store(true); }

 private:
  absl::Status Register();
  void OfferModels(const std::vector<std::string>& wanted);
  // A model of ours that cannot be served after all.
  void Disown(const std::string& model, const absl::Status& status);
  // A lease whose model or prompts are too large for this worker's memory: that says nothing against the shard, and
  // other workers may have more.
  void TurnBack(ShardRun& run, const absl::Status& status);
  // No shard of its benchmark is asked for again.
  void Refuse(ShardRun& run, const absl::Status& status);
  void SetUnusable(const std::string& name, const std::string& reason);
  // Why none of `wanted` can be served here; OK if one can.
  absl::Status Unserved(const std::vector<std::string>& wanted) const;
  // Pulls a lease if there is room for one; sets idle_until_ when there is none.
  absl::Status MaybeAcquire();
  absl::Status StartLease(LeaseGrant grant);
  // Positions that the lease's model must run beyond its context; 0: none. InvalidArgument: its items do not fit.
  absl::StatusOr<int64_t> PositionsFor(const LeaseGrant& grant, const benchmarks::Benchmark& benchmark);
  absl::Status Load(const LeaseGrant& grant, int64_t positions);
  // Loads the model and submits the lease's items.
  absl::Status Begin(ShardRun& run, const std::shared_ptr<const benchmarks::Benchmark>& benchmark, int64_t positions);
  // `opened` with the lease's items, where those follow from the loaded model.
  absl::StatusOr<std::shared_ptr<const benchmarks::Benchmark>> ItemsOf(
      const LeaseGrant& grant, const std::shared_ptr<const benchmarks::Benchmark>& opened);
  absl::StatusOr<std::shared_ptr<const benchmarks::Benchmark>> OpenFor(const JobSpec& job);
  absl::Status CanGrade(const benchmarks::Benchmark& benchmark) const;
  void Handle(SampleDone done);
  void Handle(ItemCommitted committed);
  void Handle(const LeaseEnded& ended);
  void Handle(const ItemFailed& failed);
  void Fail(ShardRun& run, const absl::Status& status);
  void Release(const ShardRun& run, ReleaseReason reason, const absl::Status& status);
  void Drop(ShardId shard, Fence fence);
  ShardRun* Find(ShardId shard, Fence fence);
  // Finishes what the engine has begun for at most `patience`, then releases the rest uncharged.
  void DrainLeases(absl::Duration patience);
  void ReportLoad();
  RequestId NextRequestId(const char* what);
  void Log(const std::string& line) const {
    if (options_.log) options_.log(line);
  }

  WorkerApi& api_;
  ModelSource& models_;
  Clock& clock_;
  const WorkerOptions options_;
  EventQueue events_;
  std::atomic<bool> stopping_{false};

  // Loop thread only.
  int64_t requests_ = 0;
  std::vector<std::string> accepted_;  // models that the coordinator took
  // Wanted models that we cannot serve now. Tried again after a while: a folder may be copied later, and a name that
  // one sweep refused may be free in another.
  struct Unusable {
    std::string reason;
    absl::Duration retry_at;
  };
  std::map<std::string, Unusable> unusable_;
  std::map<std::string, std::string> refused_;  // benchmarks that can't be graded here, and why
  std::map<std::string, std::shared_ptr<const benchmarks::Benchmark>> benchmarks_;  // by canonical ref
  std::map<std::string, std::unique_ptr<benchmarks::ItemSource>> sources_;          // of the loaded model
  std::string loaded_name_, loaded_numerics_;
  int64_t loaded_positions_ = 0;
  bool alone_ = false;  // a lease was turned back because the model runs with other positions: no second one till then
  LoadedModel loaded_;
  std::unique_ptr<benchmarks::PromptEncoder> encoder_;
  std::unique_ptr<Outbox> outbox_;
  std::unique_ptr<ItemFinisher> finisher_;  // pushes to outbox_
  std::unique_ptr<LeaseKeeper> keeper_;
  std::list<ShardRun> runs_;
  TelemetryLedger ledger_;
  absl::Duration idle_until_;
  bool all_done_ = false;
  absl::Duration load_since_;
  int64_t load_tokens_ = 0;  // of the running engine
  // Last member: its callbacks post to events_, so it goes first.
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace iha::worker
