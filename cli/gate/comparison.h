// comparison.h: two stored models over the same items: what changed from A to B, item by item, with the texts.
// Blocking reads; thread: any.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/exemplar_leak.h"
#include "benchmarks/scoring/rational.h"
#include "benchmarks/scoring/stats_paired.h"
#include "cli/gate/stored_run.h"
#include "coordinator/store/store.h"
#include "reports/gate_run.h"

namespace iha::cli {

// One metric: Delta = B - A.
struct ComparedMetric {
  size_t entry = 0;       // of A
  std::string name;       // of A's metric among all of its run (reports/entry_names.h)
  std::string benchmark;  // A's entry, by its name
  std::string metric;
  scoring::Rational a, b;       // means, exact
  scoring::PairedResult test;   // two-sided 95 %: each bound one-sided at 2.5 %
  bool identical = false;       // every generation is bit-identical
  const char* p_test = "";      // "mcnemar" (exact; grades 0 or 1, one sample an item) or "sign_flip"
  double p = 1.0;               // two-sided, against Delta = 0
  std::optional<double> mid_p;  // of McNemar's test
};

// What became of a model's samples in one base metric: correct, partly, wrong, truncated (cut by the token limit and
// not right), no_answer, of programs the sandbox's word (timed out, failed, killed, ...), else why there is no score.
using Taxonomy = std::map<std::string, int64_t>;

struct FlippedSide {
  std::string value;    // exact fraction
  std::string outcome;  // of the sample shown
  std::string text;
};
struct Flip {
  std::string name;  // as ComparedMetric's, here and below
  std::string benchmark;
  std::string metric;
  int64_t index = 0;
  std::string item_id;
  int64_t sample = 0;  // the first whose grade differs
  FlippedSide a, b;
};

struct Comparison {
  reports::GateRun a, b;
  std::vector<ComparedMetric> metrics;
  // Of the entries that are compared, by A's entry name and base metric.
  std::map<std::pair<std::string, std::string>, std::pair<Taxonomy, Taxonomy>> taxonomy;
  std::vector<Flip> flips;    // the largest changes first
  int64_t flipped = 0;        // how many there are, an item once for each metric; those that are not shown included
  int64_t flipped_items = 0;  // each item of a benchmark's entry once
  std::map<std::string, std::vector<benchmarks::ExemplarLeak>> leaks;  // by benchmark spec
  std::vector<std::string> notes;
};

struct CompareOptions {
  std::vector<std::string> metrics;  // empty = all
  int64_t flips = 10;                // shown; 0 = all
  std::string data_root;
};

// FailedPrecondition: not comparable (as EvaluateGate), run for a sequential gate; NotFound, DataLoss as stored_run.h.
absl::StatusOr<Comparison> CompareRuns(coordinator::Store& store, const RunName& a, const RunName& b,
                                       const CompareOptions& options);

// Of one sample in one metric, see Taxonomy.
std::string OutcomeOf(const SampleGrade& grade, FinishReason finish);

}  // namespace iha::cli
