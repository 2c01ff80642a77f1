// engine.h: requests in, generations out: continuous batching over one model backend.
//
//   Submit/Cancel (any thread) -> inbox -> [ Scheduler -> BatchPlan -> Executor -> Sampler ] -> results
//                                          `-- the stepping thread: Start()'s, or whoever calls Step()
//
// A result depends on its request and the model alone (ENG-1). Contract: docs/contracts/engine.md.
// Thread: Submit, Cancel, WaitResult, TryPopResult, Drain, counters and info may be called from any thread. Step is for
// callers that drive the engine themselves: one thread, and not after Start.
// Ownership: the engine owns backend, decoders and its thread; the clock must outlive it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "worker/engine/active_request.h"
#include "worker/engine/batch_limit.h"
#include "worker/engine/executor.h"
#include "worker/engine/scheduler.h"
#include "worker/engine/text_decoder.h"

namespace iha::engine {

struct EngineOptions {
  int64_t kv_bytes = int64_t{1} << 30;  // KV cache budget, never exceeded
  // Not 0: nobody chose kv_bytes. Where the cache lies on a device that says what it has left, DeviceKvBytes takes its
  // place, for so many engines.
  int64_t device_sharers = 0;
  SchedulerOptions scheduler;
  const Clock* clock = nullptr;  // for the counters' seconds only; null = they stay 0
};

// Since the engine was made. Telemetry: never part of a result or a digest.
struct EngineCounters {
  int64_t requests = 0;
  int64_t results = 0;           // of any status
  int64_t prompt_tokens = 0;     // of submitted requests
  int64_t generated_tokens = 0;  // drawn
  int64_t computed_tokens = 0;   // positions run through the model, recomputation included
  int64_t prefill_tokens = 0;    // of them, of prompts and continuations; the others were generated
  int64_t steps = 0;
  int64_t step_sequences = 0;  // sum over steps: divided by steps = batch occupancy
  int32_t kv_blocks = 0;
  int32_t kv_blocks_used = 0;
  int32_t kv_blocks_peak = 0;
  int64_t prefix_blocks = 0;  // kept by the prefix cache now
  int64_t prefix_evictions = 0;
  SchedulerCounters scheduler;
  absl::Duration schedule_time;
  absl::Duration forward_time;
  absl::Duration prefill_time;   // of forward_time; a step is split by its positions
  absl::Duration sample_time;    // sampling, decoding, stop strings
  model::OpTotals operations{};  // of forward_time, by operation
};

class Engine {
 public:
  // ResourceExhausted: the budget holds not a block of each layer group, or no such memory. InvalidArgument: options.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(std::unique_ptr<model::Backend> backend,
                                                        TextDecoderFactory decoders, const EngineOptions& options);
  // Cancels what is outstanding: callbacks get Cancelled, on the engine's thread if there is one. Joins the thread.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Takes the request over. Its result goes to `on_done` (called once, on the stepping thread, no lock held; it may
  // call Submit and Cancel) or, without one, to WaitResult and TryPopResult. Does not block.
  // Errors, nothing is queued: InvalidArgument (names the field), ResourceExhausted (KV budget too small for this one
  // sequence: needed and available blocks), FailedPrecondition (draining).
  absl::StatusOr<SequenceId> Submit(GenerationRequest request, ResultCallback on_done = nullptr);
  // The result, if it was not there yet, is Cancelled. Unknown ids are ignored. Does not block.
  void Cancel(SequenceId id);

  // True when a prompt and `more` tokens, drawn or scored behind it, fit into the model's context: all but the last,
  // which is never computed. Else the item is unscored, prompt_too_long.
  bool FitsContext(int64_t prompt_tokens, int64_t more) const;

  // Results of requests without a callback, in order of completion.
  std::optional<GenerationResult> TryPopResult();
  // Blocks until there is one; nullopt once nothing is outstanding. Needs Start().
  std::optional<GenerationResult> WaitResult();

  // Starts the engine's thread. Once.
  void Start();
  // One step on the calling thread: false when there is nothing to do. Errors of single requests are in their results;
  // an error here (Internal) is a broken invariant and the engine must not be used further.
  absl::StatusOr<bool> Step();
  // Refuses new requests and blocks until all results are out. Needs Start(); idempotent.
  void Drain();

  const model::ModelInfo& info() const { return info_; }
  EngineCounters counters() const;
  // For tests that call Step: ENG-2 .. ENG-6 and ENG-10 hold between steps.
  absl::Status CheckInvariants() const { return scheduler_.CheckInvariants(); }

 private:
  struct Arrival {
    SequenceId id{};
    GenerationRequest request;
    ResultCallback on_done;
  };
  struct Delivery {
    GenerationResult result;
    ResultCallback on_done;
  };

  Engine(std::unique_ptr<Executor> executor, TextDecoderFactory decoders, const EngineOptions& options);

  absl::Status Validate(const GenerationRequest& request) const;
  void Loop();
  void TakeInbox();
  void CountForward(const BatchPlan& plan, absl::Duration time, bool done);
  // How tokens are drawn from the plan's rows of logits, in order.
  std::vector<model::RowDraw> DrawsOf(const BatchPlan& plan) const;
  void ReadLogits(const BatchPlan& plan);
  void OnForwardError(const BatchPlan& plan, const absl::Status& status);
  // Takes the request out of active_; the scheduler must have let go of it. Deliver hands the result over.
  void Finish(SequenceId id, absl::Status status);
  void Deliver();
  void FailAll(const absl::Status& status);
  std::optional<GenerationResult> PopResultLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PublishCounters();
  absl::Duration Now() const { return clock_ == nullptr ? absl::ZeroDuration() : clock_->Elapsed(); }

  // Constant after construction.
  const TextDecoderFactory decoders_;
  const Clock* const clock_;
  const model::ModelInfo info_;
  const int32_t kv_blocks_;

  // Owned by the stepping thread.
  std::unique_ptr<Executor> executor_;
  Scheduler scheduler_;
  BatchLimit batch_limit_;
  Sampler sampler_;
  std::map<SequenceId, ActiveRequest> active_;
  std::vector<Delivery> finished_;  // out at the end of the step
  EngineCounters tally_;

  mutable absl::Mutex mu_;
  std::vector<Arrival> inbox_ ABSL_GUARDED_BY(mu_);
  std::vector<SequenceId> cancels_ ABSL_GUARDED_BY(mu_);
  std::deque<GenerationResult> results_ ABSL_GUARDED_BY(mu_);  // oldest first
  int64_t next_id_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t outstanding_ ABSL_GUARDED_BY(mu_) = 0;  // submitted, result not out
  int64_t submitted_prompt_tokens_ ABSL_GUARDED_BY(mu_) = 0;
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  EngineCounters published_ ABSL_GUARDED_BY(mu_);

  std::thread thread_;
};

}  // namespace iha::engine
