#include "reports/gate_sequential.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "benchmarks/scoring/stats_betting.h"
#include "common/counted.h"
#include "common/errors.h"
#include "common/rng.h"
#include "common/status_macros.h"

namespace iha::reports {
namespace {

using scoring::BetSide;
using scoring::EProcess;

double AsDouble(const Score& score) { return static_cast<double>(score.num) / static_cast<double>(score.den); }

// One metric's walk over its items in the seeded order.
class Walk {
 public:
  Walk(const GateEntry& candidate, const GateEntry& baseline, const PairedMetric& pair, const Margin& margin,
       const SequentialOptions& options)
      : pass_(BetSide::kAbove, 0.5 * (1.0 - margin.value), options.gate.alpha, Population(baseline, options)),
        worse_(BetSide::kBelow, 0.5, options.gate.alpha, Population(baseline, options)),
        enough_(1.0 / options.gate.alpha),
        stops_votes_(candidate.stop_settled_votes),
        samples_an_item_(candidate.sampling.samples) {
    std::vector<int64_t> samples(static_cast<size_t>(baseline.planned));
    for (const GateItem& item : candidate.items) {
      if (item.index < baseline.planned) samples[static_cast<size_t>(item.index)] = item.samples;
    }
    const auto a = ByIndex(candidate, pair.candidate_metric), b = ByIndex(baseline, pair.baseline_metric);
    for (const int64_t index : SeededOrder(options.seed, baseline.planned)) {
      const auto& own = a[static_cast<size_t>(index)];
      const auto& other = b[static_cast<size_t>(index)];
      if (!own.has_value() || !other.has_value()) break;
      differences_.push_back(*own == *other ? 0.0 : AsDouble(*own) - AsDouble(*other));
      samples_.push_back(samples[static_cast<size_t>(index)]);
    }
    planned_ = baseline.planned;
  }

  // The next item; false where there is none.
  bool Advance() {
    if (used_ >= differences_.size()) return false;
    const double d = differences_[used_++];
    sum_ += d;
    pass_.Add(0.5 * (d + 1.0));
    worse_.Add(0.5 * (d + 1.0));
    return true;
  }
  bool passed() const { return pass_.largest() >= enough_; }
  double e_pass() const { return pass_.largest(); }
  double e_worse() const { return worse_.e_value(); }
  int64_t used() const { return static_cast<int64_t>(used_); }
  int64_t planned() const { return planned_; }
  // Adds what the votes of the first items took and would have taken.
  void CountVoteSamples(SequentialReport& report) const {
    if (!stops_votes_) return;
    for (size_t i = 0; i < used_; i++) {
      report.vote_samples += samples_[i];
      report.vote_samples_planned += samples_[i] == 0 ? 0 : samples_an_item_;  // 0: no prompt to draw from
    }
  }
  double mean() const { return used_ == 0 ? 0.0 : sum_ / static_cast<double>(used_); }

 private:
  static int64_t Population(const GateEntry& entry, const SequentialOptions& options) {
    return options.benchmark ? entry.planned : 0;
  }
  static std::vector<std::optional<Score>> ByIndex(const GateEntry& entry, size_t metric) {
    std::vector<std::optional<Score>> values(static_cast<size_t>(entry.planned));
    for (const GateItem& item : entry.items) {
      if (item.index < entry.planned) values[static_cast<size_t>(item.index)] = item.values[metric];
    }
    return values;
  }

  EProcess pass_;
  EProcess worse_;
  double enough_;
  bool stops_votes_;
  int64_t samples_an_item_;
  std::vector<double> differences_;
  std::vector<int64_t> samples_;  // that the candidate drew
  size_t used_ = 0;
  int64_t planned_ = 0;
  double sum_ = 0.0;
};

// Whether the evidence is certain now; sets each metric's verdict.
bool Decided(const std::vector<Walk>& walks, double alpha, SequentialReport& report) {
  std::vector<double> worse;
  for (const Walk& walk : walks) worse.push_back(walk.e_worse());
  const std::vector<double> adjusted = scoring::EHolmAdjusted(worse);
  bool all_pass = true, any_fail = false;
  for (size_t m = 0; m < walks.size(); m++) {
    SequentialMetric& metric = report.metrics[m];
    metric.e_pass = walks[m].e_pass();
    metric.e_worse = adjusted[m];
    const bool fails = !walks[m].passed() && adjusted[m] >= 1.0 / alpha;
    metric.verdict = walks[m].passed() ? Verdict::kPass : (fails ? Verdict::kFail : Verdict::kInconclusive);
    all_pass = all_pass && walks[m].passed();
    any_fail = any_fail || fails;
  }
  report.verdict = any_fail ? Verdict::kFail : (all_pass ? Verdict::kPass : Verdict::kInconclusive);
  return any_fail || all_pass;
}

// All walks in step, each at its own share of the longest, until the evidence or the items run out.
void WalkAll(std::vector<Walk>& walks, const SequentialOptions& options, SequentialReport& report) {
  int64_t longest = 0;
  for (const Walk& walk : walks) longest = std::max(longest, walk.planned());
  bool ended = false;
  for (int64_t step = 1; step <= longest && !ended; step++) {
    bool moved = false;
    for (Walk& walk : walks) {
      if (walk.used() >= step * walk.planned() / longest) continue;
      const bool advanced = walk.Advance();
      moved = moved || advanced;
      ended = ended || (options.in_step && !advanced);
    }
    if (moved && !ended) ended = Decided(walks, options.gate.alpha, report);
  }
  for (size_t m = 0; m < walks.size(); m++) {
    report.metrics[m].used = walks[m].used();
    report.metrics[m].planned = walks[m].planned();
    report.metrics[m].delta = walks[m].mean();
  }
}

// Items of each of the baseline's entries once, however many metrics it has; samples of each of the candidate's, which
// may ask for one metric apart.
void CountWork(const std::vector<PairedMetric>& pairs, const std::vector<Walk>& walks, SequentialReport& report) {
  std::set<size_t> counted, drawn;
  for (size_t m = 0; m < pairs.size(); m++) {
    if (drawn.insert(pairs[m].candidate_entry).second) walks[m].CountVoteSamples(report);
    if (!counted.insert(pairs[m].baseline_entry).second) continue;
    report.used += report.metrics[m].used;
    report.planned += report.metrics[m].planned;
  }
}

// What was spared besides: samples behind settled votes.
std::string VotesText(const SequentialReport& report) {
  if (report.vote_samples_planned == 0) return "";
  return fmt::format("; their votes were settled by {} of {}", report.vote_samples,
                     Counted(report.vote_samples_planned, "sample"));
}

std::string ReasonOf(const SequentialReport& report) {
  const double share = 100.0 * static_cast<double>(report.planned - report.used) / static_cast<double>(report.planned);
  const std::string votes = VotesText(report);
  const std::string used = fmt::format("after {} of {} ({:.0f} % of the work not needed){}", report.used,
                                       Counted(report.planned, "item"), share, votes);
  switch (report.verdict) {
    case Verdict::kPass:
      return fmt::format("every metric is within its margin, {}", used);
    case Verdict::kFail:
      return fmt::format("a metric got worse, {}", used);
    case Verdict::kInconclusive:
      break;
  }
  return fmt::format("not certain after {} of {}{}", report.used, Counted(report.planned, "item"), votes);
}

}  // namespace

absl::StatusOr<SequentialReport> EvaluateSequentially(const GateRun& candidate, const GateRun& baseline,
                                                      const SequentialOptions& options) {
  SequentialReport report;
  report.alpha = options.gate.alpha;
  IHA_ASSIGN_OR_RETURN(const std::vector<PairedMetric> pairs,
                       PairMetrics(candidate, baseline, options.gate.metrics, report.notes));
  const std::vector<NamedEntry> named = Named(baseline);
  const std::vector<std::string> entries = EntryNames(named);
  const std::vector<std::vector<std::string>> names = MetricNames(named);
  std::vector<Walk> walks;
  for (const PairedMetric& pair : pairs) {
    const GateEntry& entry = baseline.entries[pair.baseline_entry];
    const GateMetric& metric = entry.metrics[pair.baseline_metric];
    const std::string& name = names[pair.baseline_entry][pair.baseline_metric];
    if (!options.gate.margin.has_value() && !metric.margin.has_value()) {
      return InvalidArgument("{}: the baseline has no margin; give --margin, or export it again", name);
    }
    const Margin margin = options.gate.margin.has_value() ? Margin{*options.gate.margin, "given"} : *metric.margin;
    SequentialMetric& out = report.metrics.emplace_back();
    out.name = name;
    out.benchmark = entries[pair.baseline_entry];
    out.metric = metric.name;
    out.margin = margin;
    walks.emplace_back(candidate.entries[pair.candidate_entry], entry, pair, margin, options);
  }
  WalkAll(walks, options, report);
  CountWork(pairs, walks, report);
  report.reason = ReasonOf(report);
  return report;
}

}  // namespace iha::reports
