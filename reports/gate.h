// gate.h: did this checkpoint get worse? A verdict with stated error rates, from two runs over the same items.
//
// For each metric Delta = candidate - baseline, L and U its one-sided (1 - alpha) bounds (scoring/stats_paired.h), m
// its margin (gate_run.h):
//   PASS          L > -m: not worse by m or more; or every generation is bit-identical: nothing to test
//   FAIL          not PASS, and worse: p of "Delta >= 0", adjusted by Holm over the gate's metrics, is at most alpha
//   INCONCLUSIVE  the rest: says how much more would decide
// Over all: FAIL where a metric fails, PASS where every one passes. P(FAIL | nothing got worse) <= alpha, and P(PASS |
// some metric lost m or more) <= alpha (intersection-union: no correction); docs/gate-calibration.md measures both.
// Margins never depend on the candidate. Pure; thread: any; equal runs give equal reports.
//
// Errors: FailedPrecondition: the runs are not comparable (names the first field that differs, both values); an item or
// a metric is missing; EvaluateGate: the candidate was run for the sequential gate (item_order). InvalidArgument: a
// metric that no entry has, a baseline without a margin.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/scoring/rational.h"
#include "benchmarks/scoring/stats_paired.h"
#include "reports/gate_run.h"

namespace iha::reports {

enum class Verdict { kPass, kFail, kInconclusive };
const char* NameOf(Verdict verdict);  // "PASS", "FAIL", "INCONCLUSIVE"

struct GateOptions {
  std::vector<std::string> metrics = {};        // as entries name them; empty = all that the baseline has
  double alpha = 0.05;                          // in (0, 0.5)
  double power = 0.8;                           // of the minimum detectable effect and of "how many more"
  std::optional<double> margin = std::nullopt;  // for every metric, instead of the baseline's own
  std::optional<int32_t> draws = std::nullopt;  // bootstrap resamples, for tests; default 10,000
};

// A metric of an entry that both runs have, its values by item.
struct PairedMetric {
  size_t candidate_entry = 0;
  size_t baseline_entry = 0;
  size_t candidate_metric = 0;
  size_t baseline_metric = 0;
};

struct MetricVerdict {
  std::string name;       // of the baseline's metric among all of its run (entry_names.h)
  std::string benchmark;  // the baseline's entry, by its name
  std::string metric;     // as entries name it
  Verdict verdict = Verdict::kInconclusive;
  std::string reason;  // one sentence
  Margin margin;
  bool identical = false;  // every generation is bit-identical: `test` holds counts only
  scoring::PairedResult test;
  double adjusted_p = 1.0;      // test.p_worse by Holm
  scoring::Rational candidate;  // means, exact: they are rounded once, when they are printed
  scoring::Rational baseline;
  // At this n and sd; absent where the differences have no scatter to tell from.
  std::optional<double> detectable;  // minimum detectable effect
  std::optional<double> power;       // that an unchanged candidate passes `margin`
  // INCONCLUSIVE: about how many more items, or how many samples an item, decide if Delta is what was seen; absent
  // where that would be very many.
  std::optional<int64_t> more_items;
  std::optional<int64_t> samples_needed;
  scoring::Rational delta() const { return candidate - baseline; }
  double discordance() const {
    return test.items == 0 ? 0.0 : static_cast<double>(test.better + test.worse) / static_cast<double>(test.items);
  }
};

struct GateReport {
  Verdict verdict = Verdict::kInconclusive;
  std::string reason;
  double alpha = 0.05;
  double target_power = 0.8;
  std::vector<MetricVerdict> metrics;
  GateRun candidate;  // without their entries: names, digests, numerics
  GateRun baseline;
  std::vector<std::string> notes;
};

// The rule by itself, of a metric that was tested.
Verdict VerdictOf(const scoring::PairedResult& test, double margin, double adjusted_p, double alpha);

absl::StatusOr<GateReport> EvaluateGate(const GateRun& candidate, const GateRun& baseline, const GateOptions& options);

// Which metrics a gate (or a comparison) looks at: every entry of the baseline that has a chosen metric is paired with
// the candidate's entry of equal settings. Errors as above; adds what only one side has to `notes`.
absl::StatusOr<std::vector<PairedMetric>> PairMetrics(const GateRun& candidate, const GateRun& baseline,
                                                      const std::vector<std::string>& metrics,
                                                      std::vector<std::string>& notes);

// The values of one metric by item, all planned items of both. FailedPrecondition names how many are missing.
struct PairedValues {
  std::vector<Score> candidate;
  std::vector<Score> baseline;
  bool identical = true;  // every item's outputs are equal
};
// The mean of grades (at least one), exactly.
scoring::Rational MeanOf(const std::vector<Score>& scores);
absl::StatusOr<PairedValues> ValuesOf(const GateRun& candidate, const GateRun& baseline, const PairedMetric& pair);

}  // namespace iha::reports
