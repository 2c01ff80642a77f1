// sequential_watch.h: looks at a sweep while it runs and says when the sequential gate's verdict is certain.
//
// The candidate's sweep has an item_order: its items arrive about in that order, and the gate looks at them in exactly
// that one (reports/gate_sequential), so that a verdict never depends on who was faster. Once a look has found a
// verdict, every later one finds the same. Reading a sweep takes time, so looks are spaced by ten times what one took.
// Blocking; belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/gate/gate_flags.h"
#include "cli/gate/stored_run.h"
#include "common/clock.h"
#include "coordinator/store/store.h"
#include "reports/gate_sequential.h"

namespace iha::cli {

class SequentialWatch {
 public:
  // Of the one model of `spec`; `known`: what is known of its run so far (PlannedRun, or what is stored); `flag` named
  // the baseline. `store` and `clock` must outlive it. Errors: those of ReadGateBaseline; FailedPrecondition: no
  // comparison with the baseline (as EvaluateGate; a tokenizer that is not known yet is not looked at), several models,
  // whose sweep one verdict would stop for all, or no item_order.
  static absl::StatusOr<std::unique_ptr<SequentialWatch>> Open(const GateFlags& flags, const std::string& flag,
                                                               const SweepSpec& spec, reports::GateRun known,
                                                               coordinator::Store& store, Clock& clock);

  // Whether the verdict is certain, at `finished` items of the sweep. Looks only if there are more than at the last
  // look and it is time. Errors: those of ReadStoredRun and EvaluateSequentially.
  absl::StatusOr<bool> Certain(int64_t finished);

  // From all that is stored now.
  absl::StatusOr<reports::SequentialReport> Report() const;

 private:
  SequentialWatch(coordinator::Store& store, Clock& clock) : store_(store), clock_(clock) {}

  coordinator::Store& store_;
  Clock& clock_;
  RunName candidate_;
  reports::GateRun baseline_;
  GateFlags flags_;
  int64_t seen_ = -1;
  absl::Duration next_ = absl::ZeroDuration();  // on clock_.Elapsed()
};

// The verdict of two runs, items in the candidate's own order where it has one.
absl::StatusOr<reports::SequentialReport> EvaluateInOrder(const reports::GateRun& candidate,
                                                          const reports::GateRun& baseline, const GateFlags& flags);

}  // namespace iha::cli
