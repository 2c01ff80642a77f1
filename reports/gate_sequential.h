// gate_sequential.h: the gate with a look after every item, for runs that are stored in part or whole: the verdict is
// certain as soon as the evidence is, and says how many items it needed.
//
// Items are taken in a seeded random order that does not depend on what they hold, so that after t of them they are a
// uniform sample without replacement. For each metric two one-sided e-processes (scoring/stats_betting.h) of d =
// candidate - baseline in [-1, 1]: against "Delta <= -margin" (crossing 1 / alpha: the metric passes, for good) and
// against "Delta >= 0" (e-Holm over the metrics at 1 / alpha: it fails). By Ville's inequality P(FAIL | nothing got
// worse) and P(PASS | some metric lost its margin) are at most alpha however often one looks. Bounded differences need
// more items than the fixed-n test does; the two verdicts are never mixed: a report holds one of them. Pure; thread:
// any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/gate.h"

namespace iha::reports {

struct SequentialOptions {
  GateOptions gate = {};
  uint64_t seed = 1234;  // of the order
  // A walk that must wait for an item holds up the others: part of a run gives the very looks that the whole gives, so
  // that a running sweep's verdict is that of its end, whichever entry was faster.
  bool in_step = false;
  bool benchmark = false;  // Delta is that of the benchmark's own list of items (drawn without replacement)
};

struct SequentialMetric {
  std::string name;  // as the gate calls it (entry_names.h)
  std::string benchmark;
  std::string metric;
  Verdict verdict = Verdict::kInconclusive;
  Margin margin;
  double e_pass = 1.0;   // largest evidence against "Delta <= -margin"
  double e_worse = 1.0;  // evidence against "Delta >= 0" when the walk ended, by e-Holm
  double delta = 0.0;    // mean of d over the items used
  int64_t used = 0;
  int64_t planned = 0;
};

struct SequentialReport {
  Verdict verdict = Verdict::kInconclusive;
  std::string reason;
  double alpha = 0.05;
  std::vector<SequentialMetric> metrics;
  int64_t used = 0;     // items of all entries that were looked at
  int64_t planned = 0;  // of the full run
  // Of the items looked at, in entries that stop settled votes: samples drawn, and what all k would have been.
  int64_t vote_samples = 0;
  int64_t vote_samples_planned = 0;
  std::vector<std::string> notes;
};

// Walks as far as both runs have values; a metric's items are looked at in the order's sequence, so the first that is
// missing ends its walk. Errors: as EvaluateGate, but for missing items.
absl::StatusOr<SequentialReport> EvaluateSequentially(const GateRun& candidate, const GateRun& baseline,
                                                      const SequentialOptions& options);

}  // namespace iha::reports
