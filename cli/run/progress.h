// progress.h: the live line of `run` and `watch`. Pure formatting; the caller decides where and how often to print.
#pragma once

#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "common/coordinator_api.h"

namespace iha::cli {

// Remembers when the work began, so that the estimate rests on this run's own speed and not on resumed items.
class ProgressMeter {
 public:
  // "gsm8k · SmolLM2 12/24 · total 12/48 items · 141 tokens/s · 1 worker · ETA 1m20s", at most `width` columns.
  std::string Line(const SweepProgress& progress, absl::Duration elapsed, int width);

 private:
  bool started_ = false;
  int64_t first_finished_ = 0;
  absl::Duration first_elapsed_;
};

// When a line is due where nobody watches a terminal: after 10 s, then after twice the time that has passed, at least
// every five minutes.
class ProgressPace {
 public:
  // `elapsed` never falls. True at most once for each time that a line is due.
  bool Due(absl::Duration elapsed);

 private:
  absl::Duration next_ = absl::Seconds(10);
};

// Finished (scored or not) and planned items over all jobs.
int64_t FinishedItems(const SweepProgress& progress);
int64_t PlannedItems(const SweepProgress& progress);

}  // namespace iha::cli
