// gate_run.h: one model's results as a gate compares them: settings, digests, values by item, and the margins that were
// fixed before any candidate existed. Read from a database (cli/gate/stored_run.h) or from a baseline bundle
// (baseline_json.h). Immutable value; thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/eval_types.h"
#include "reports/entry_names.h"

namespace iha::reports {

// The largest loss that still passes, as a fraction of 1, and where it comes from.
struct Margin {
  double value = 0.0;
  std::string rule;  // "within_item_variance", "assumed_discordance" or "given"
};

struct GateMetric {
  std::string name;  // as in SweepEntry::metrics
  // Mean over items of the variance between an item's samples; absent where they can't tell (one sample, nothing drawn
  // at random, a vote or another value that is no mean of samples).
  std::optional<double> within_variance = std::nullopt;
  std::optional<Margin> margin = std::nullopt;  // of a baseline
};

struct GateItem {
  int64_t index = 0;
  std::string id;
  Digest outputs;       // of its samples' tokens, texts and ends, whoever generated them
  int64_t samples = 0;  // that were drawn; 0 in a bundle
  // One for each metric: what the item adds to the mean, 0 where it finished without a score because of the model or
  // the grader; absent where it adds nothing (no grader, undefined).
  std::vector<std::optional<Score>> values;
};

struct GateEntry {
  BenchmarkRef benchmark;
  SamplingParams sampling;
  std::string benchmark_version;
  std::string grader_version;
  Digest data_digest;
  Digest prompt_digest;
  int64_t planned = 0;
  bool stop_settled_votes = false;  // as SweepEntry's; the values are those of all samples, so no setting to compare
  std::vector<GateMetric> metrics;
  std::vector<GateItem> items;  // increasing index; those that are not committed are absent
};

// How `auto` margins are fixed: alpha and power of the test that an unchanged candidate has to pass, and the share of
// items that are assumed to change where the samples of one item can't tell.
struct MarginRule {
  double alpha = 0.05;
  double power = 0.8;
  double discordance = 0.10;
};

struct GateRun {
  std::string sweep;  // id in hex
  std::string model;
  Digest weights;
  Digest tokenizer;
  std::string numerics_id;
  std::string iha_eval_version;
  std::optional<uint64_t> item_order = std::nullopt;  // SweepSpec::item_order: only a sequential verdict may be given
  std::optional<MarginRule> margin_rule = std::nullopt;  // of a baseline: by which its margins were fixed
  std::vector<GateEntry> entries;
};

// (z_{1-alpha} + z_power) s / sqrt(n) with s^2 = 2 within_variance / k, else s^2 = discordance: the margin that an
// unchanged candidate passes with that power. Depends on the baseline alone.
Margin AutoMargin(const GateEntry& entry, const GateMetric& metric, const MarginRule& rule);
// Fixes the margin of every metric that has none, and notes the rule.
void FixMargins(GateRun& baseline, const MarginRule& rule);

// The run's entries and their metrics by name, see entry_names.h.
std::vector<NamedEntry> Named(const GateRun& run);

// FailedPrecondition: `sweep` has an `item_order`, so that what is there depends on what it showed (items end with the
// verdict, samples with their votes), and only the sequential gate's verdict holds. `advice` ends the message.
absl::Status CheckUnstopped(const std::optional<uint64_t>& item_order, const std::string& sweep,
                            const std::string& advice);

}  // namespace iha::reports
