// regrade.h: grades the stored texts of a sweep again, by this program's graders.
//
// The first rows stay, and tables go on showing them; what is new lies beside them under its own grader version: the
// benchmark's, or that with "#2", "#3", ... where rows of that name exist already (libraries that were missing then).
// Compared with the latest rows of this program's grader version, else with the first ones. Nothing is written where
// this version has graded before and nothing differs: a new version has rows of its own, equal or not. Programs are run
// again, many at a time, by the judge that the benchmarks were opened with.
// Blocking; one transaction for each job. Errors: FailedPrecondition (other data or another version of the protocol
// than the sweep's), DataLoss (a stored text is damaged), the store's own; those of the judge's Ready, asked before
// anything is graded and again before a job of programs is stored: a judge that was lost writes no rows.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/graders/code_judge.h"
#include "benchmarks/scoring/rational.h"
#include "coordinator/planner/planner.h"
#include "coordinator/store/store.h"

namespace iha::coordinator {

struct RegradedMetric {
  std::string metric;
  int64_t scored_before = 0;
  int64_t scored_after = 0;
  scoring::Rational sum_before;  // over the scored items
  scoring::Rational sum_after;
};

struct RegradedJob {
  JobSpec job;
  std::string before;   // grader version of the rows that were compared with
  std::string after;    // of the rows that were written; "" = none were
  int64_t items = 0;    // stored ones
  int64_t changed = 0;  // of them: other grades or values
  std::vector<RegradedMetric> metrics;
  bool runs_code = false;  // its grades come from running programs
  bool of_checkpoint =
      false;  // its references follow from the checkpoint's tokenizer, which workers have: left as it is
};

struct RegradeOptions {
  benchmarks::CodeJudge* judge = nullptr;  // that `open` gives to benchmarks of programs; null: they stay as they are,
                                           // with no items
  // Called as items are graded, never twice at a time; from several threads where programs are run.
  std::function<void(const JobSpec& job, int64_t done, int64_t items)> progress = {};
};

absl::StatusOr<std::vector<RegradedJob>> RegradeSweep(Store& store, const SweepId& sweep, const BenchmarkOpener& open,
                                                      const RegradeOptions& options = {});

}  // namespace iha::coordinator
