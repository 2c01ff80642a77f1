#include "reports/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "benchmarks/scoring/stats_math.h"
#include "common/counted.h"
#include "common/errors.h"
#include "common/status_macros.h"
#include "reports/table.h"

namespace iha::reports {
namespace {

std::string Points(double fraction) { return fmt::format("{:+.2f}", 100.0 * fraction); }

scoring::PairedOptions TestOptions(const SamplingParams& sampling, const GateOptions& options) {
  scoring::PairedOptions test{.alpha = options.alpha, .single_sample = sampling.samples == 1};
  if (options.draws.has_value()) test.draws = *options.draws;
  return test;
}

// Where nothing scatters the normal approximation says nothing: how many more items, all like these, the test itself
// needs to decide.
std::optional<int64_t> MoreItemsAlike(const MetricVerdict& verdict, const scoring::PairedOptions& test) {
  constexpr int64_t kMost = int64_t{1} << 16;
  const auto decides = [&](int64_t items) {
    const std::vector<double> d(static_cast<size_t>(items), verdict.test.delta);
    const scoring::PairedResult result = scoring::CompareDifferences(d, test);
    return VerdictOf(result, verdict.margin.value, result.p_worse, test.alpha) != Verdict::kInconclusive;
  };
  int64_t low = verdict.test.items, high = low;
  while (!decides(high)) {
    low = high;
    high *= 2;
    if (high > kMost) return std::nullopt;
  }
  while (high - low > 1 + low / 32) {
    const int64_t middle = low + (high - low) / 2;
    (decides(middle) ? high : low) = middle;
  }
  return std::max<int64_t>(1, high - verdict.test.items);
}

// How much more would decide if Delta is what was seen: `gap` is its distance from the nearer of the two claims.
void SayWhatDecides(const GateEntry& candidate, const GateMetric& own, const GateMetric& other,
                    const GateOptions& options, MetricVerdict& verdict) {
  if (!(verdict.test.sd > 0.0)) {
    verdict.more_items = MoreItemsAlike(verdict, TestOptions(candidate.sampling, options));
    return;
  }
  const double gap = std::max(verdict.test.delta + verdict.margin.value, -verdict.test.delta);
  const double z = scoring::NormalQuantile(1.0 - options.alpha) + scoring::NormalQuantile(options.power);
  const double sd = verdict.test.sd;
  const double items = std::ceil(std::min(1e12, (z * sd / gap) * (z * sd / gap)));
  verdict.more_items = std::max<int64_t>(1, static_cast<int64_t>(items) - verdict.test.items);
  if (!own.within_variance.has_value() || !other.within_variance.has_value()) return;
  // sd^2 = what differs between the models' items + what a mean of k samples still scatters.
  const double within = *own.within_variance + *other.within_variance;
  const double between = std::max(0.0, sd * sd - within / candidate.sampling.samples);
  const double allowed = static_cast<double>(verdict.test.items) * (gap / z) * (gap / z) - between;
  if (within > 0 && allowed > within / 1e6) {
    verdict.samples_needed = static_cast<int64_t>(std::ceil(within / allowed));
    if (*verdict.samples_needed <= candidate.sampling.samples) verdict.samples_needed.reset();
  }
}

void Judge(const GateOptions& options, MetricVerdict& v) {
  if (v.identical) {
    v.verdict = Verdict::kPass;
    v.reason = fmt::format("bit-identical outputs on {}", Counted(v.test.items, "item"));
    return;
  }
  v.verdict = VerdictOf(v.test, v.margin.value, v.adjusted_p, options.alpha);
  switch (v.verdict) {
    case Verdict::kPass:
      v.reason = fmt::format("lower bound {} is above the margin of {}", Points(v.test.lower), Points(-v.margin.value));
      return;
    case Verdict::kFail:
      v.reason = fmt::format("worse: {} points, upper bound {}, adjusted p = {:.2g}", SignedPercent(v.delta(), 2),
                             Points(v.test.upper), v.adjusted_p);
      return;
    case Verdict::kInconclusive:
      v.reason = fmt::format("could be as bad as {} (margin {}), and is not shown to be worse (adjusted p = {:.2g})",
                             Points(v.test.lower), Points(-v.margin.value), v.adjusted_p);
  }
}

std::string WhatDecides(const MetricVerdict& v) {
  if (!v.more_items.has_value()) return "";
  std::string text = fmt::format("; about {}", Counted(*v.more_items, "more item"));
  if (v.samples_needed.has_value()) text += fmt::format(", or {} an item,", Counted(*v.samples_needed, "sample"));
  return text + " would decide if the difference is what was seen";
}

void JudgeAll(const GateOptions& options, GateReport& report) {
  std::vector<std::string> names[3];
  for (const MetricVerdict& v : report.metrics) {
    names[static_cast<size_t>(v.verdict)].push_back(v.name);
  }
  const auto& failed = names[static_cast<size_t>(Verdict::kFail)];
  const auto& open = names[static_cast<size_t>(Verdict::kInconclusive)];
  if (!failed.empty()) {
    report.verdict = Verdict::kFail;
    report.reason = fmt::format("worse in {} of {}: {}", failed.size(), CountedSize(report.metrics, "metric"),
                                fmt::join(failed, ", "));
  } else if (!open.empty()) {
    report.verdict = Verdict::kInconclusive;
    report.reason = fmt::format("{} of {} not decided: {}", open.size(), CountedSize(report.metrics, "metric"),
                                fmt::join(open, ", "));
  } else {
    report.verdict = Verdict::kPass;
    report.reason =
        report.metrics.size() == 1
            ? fmt::format("the metric is within its margin at alpha {}", options.alpha)
            : fmt::format("all {} metrics are within their margins at alpha {}", report.metrics.size(), options.alpha);
  }
}

absl::StatusOr<MetricVerdict> Evaluate(const GateRun& candidate, const GateRun& baseline, const PairedMetric& pair,
                                       const GateOptions& options) {
  const GateEntry& entry = baseline.entries[pair.baseline_entry];
  const GateMetric& metric = entry.metrics[pair.baseline_metric];
  IHA_ASSIGN_OR_RETURN(const PairedValues values, ValuesOf(candidate, baseline, pair));
  MetricVerdict verdict;
  verdict.metric = metric.name;
  verdict.candidate = MeanOf(values.candidate);
  verdict.baseline = MeanOf(values.baseline);
  verdict.identical = values.identical;
  if (options.margin.has_value()) {
    verdict.margin = {*options.margin, "given"};
  } else if (metric.margin.has_value()) {
    verdict.margin = *metric.margin;
  } else {
    return InvalidArgument("{} {}: the baseline has no margin; give --margin, or export it again", entry.benchmark.name,
                           metric.name);
  }
  verdict.test = scoring::ComparePaired(values.candidate, values.baseline, TestOptions(entry.sampling, options));
  if (verdict.identical) verdict.test.p_worse = 1.0;  // nothing was tested, so nothing is claimed
  if (!(verdict.test.sd > 0.0)) return verdict;
  verdict.detectable =
      scoring::MinimumDetectableEffect(verdict.test.sd, verdict.test.items, options.alpha, options.power);
  verdict.power = scoring::PassPower(verdict.test.sd, verdict.test.items, options.alpha, verdict.margin.value);
  return verdict;
}

GateRun WithoutEntries(const GateRun& run) {
  GateRun bare = run;
  bare.entries.clear();
  return bare;
}

}  // namespace

const char* NameOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "PASS";
    case Verdict::kFail:
      return "FAIL";
    case Verdict::kInconclusive:
      return "INCONCLUSIVE";
  }
  return "INCONCLUSIVE";
}

Verdict VerdictOf(const scoring::PairedResult& test, double margin, double adjusted_p, double alpha) {
  if (test.lower > -margin) return Verdict::kPass;
  return adjusted_p <= alpha ? Verdict::kFail : Verdict::kInconclusive;
}

absl::StatusOr<GateReport> EvaluateGate(const GateRun& candidate, const GateRun& baseline, const GateOptions& options) {
  GateReport report{.reason = "",
                    .alpha = options.alpha,
                    .target_power = options.power,
                    .metrics = {},
                    .candidate = WithoutEntries(candidate),
                    .baseline = WithoutEntries(baseline),
                    .notes = {}};
  IHA_RETURN_IF_ERROR(CheckUnstopped(candidate.item_order, "the candidate's sweep", "give --sequential"));
  IHA_ASSIGN_OR_RETURN(const std::vector<PairedMetric> pairs,
                       PairMetrics(candidate, baseline, options.metrics, report.notes));
  const std::vector<NamedEntry> named = Named(baseline);
  const std::vector<std::string> entries = EntryNames(named);
  const std::vector<std::vector<std::string>> metrics = MetricNames(named);
  std::vector<double> p;
  for (const PairedMetric& pair : pairs) {
    IHA_ASSIGN_OR_RETURN(MetricVerdict verdict, Evaluate(candidate, baseline, pair, options));
    verdict.name = metrics[pair.baseline_entry][pair.baseline_metric];
    verdict.benchmark = entries[pair.baseline_entry];
    p.push_back(verdict.test.p_worse);
    report.metrics.push_back(std::move(verdict));
  }
  const std::vector<double> adjusted = scoring::HolmAdjusted(p);
  for (size_t i = 0; i < pairs.size(); i++) {
    MetricVerdict& verdict = report.metrics[i];
    verdict.adjusted_p = adjusted[i];
    Judge(options, verdict);
    if (verdict.verdict != Verdict::kInconclusive) continue;
    const GateEntry& own = candidate.entries[pairs[i].candidate_entry];
    SayWhatDecides(own, own.metrics[pairs[i].candidate_metric],
                   baseline.entries[pairs[i].baseline_entry].metrics[pairs[i].baseline_metric], options, verdict);
    verdict.reason += WhatDecides(verdict);
  }
  if (candidate.numerics_id != baseline.numerics_id) {
    report.notes.push_back(
        fmt::format("numerics differ: candidate {}, baseline {}", candidate.numerics_id, baseline.numerics_id));
  }
  JudgeAll(options, report);
  return report;
}

}  // namespace iha::reports
