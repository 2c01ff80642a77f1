#include "reports/gate.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/counted.h"
#include "common/errors.h"
#include "common/status_macros.h"
#include "reports/gate_outlook.h"
#include "reports/table.h"

namespace iha::reports {
namespace {

std::string Points(double fraction) { return fmt::format("{:+.2f}", 100.0 * fraction); }

scoring::PairedOptions TestOptions(const SamplingParams& sampling, const GateOptions& options) {
  scoring::PairedOptions test{.alpha = options.alpha, .single_sample = sampling.samples == 1};
  if (options.draws.has_value()) test.draws = *options.draws;
  return test;
}

// A metric's verdict and what it was judged by.
struct Tested {
  MetricVerdict verdict;
  std::vector<double> d;  // candidate - baseline, by item
  OutlookOptions outlook;
};

// How much more would decide if Delta is what was seen.
void SayWhatDecides(const GateEntry& candidate, const GateMetric& own, const GateMetric& other, const Tested& tested,
                    MetricVerdict& verdict) {
  OutlookOptions outlook = tested.outlook;
  outlook.holm = std::max(1.0, verdict.adjusted_p / verdict.test.p_worse);
  verdict.more_items = MoreItemsToDecide(tested.d, outlook);
  if (!own.within_variance.has_value() || !other.within_variance.has_value()) return;
  verdict.samples_needed =
      SamplesToDecide(verdict.test, *own.within_variance + *other.within_variance, candidate.sampling.samples, outlook);
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
  if (!v.more_items.has_value()) return "; more than 65536 items would be needed if the difference is what was seen";
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

absl::StatusOr<Tested> Evaluate(const GateRun& candidate, const GateRun& baseline, const PairedMetric& pair,
                                const GateOptions& options) {
  const GateEntry& entry = baseline.entries[pair.baseline_entry];
  const GateMetric& metric = entry.metrics[pair.baseline_metric];
  IHA_ASSIGN_OR_RETURN(const PairedValues values, ValuesOf(candidate, baseline, pair));
  Tested tested;
  MetricVerdict& verdict = tested.verdict;
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
  tested.d = scoring::Differences(values.candidate, values.baseline);
  tested.outlook = {
      .test = TestOptions(entry.sampling, options), .margin = verdict.margin.value, .power = options.power};
  verdict.test = scoring::CompareDifferences(tested.d, tested.outlook.test);
  if (verdict.identical) verdict.test.p_worse = 1.0;  // nothing was tested, so nothing is claimed
  if (!(verdict.test.sd > 0.0)) return tested;
  verdict.detectable =
      scoring::MinimumDetectableEffect(verdict.test.sd, verdict.test.items, options.alpha, options.power);
  verdict.power = UnchangedPasses(tested.d, verdict.test, tested.outlook);
  return tested;
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
  std::vector<Tested> tested;
  for (const PairedMetric& pair : pairs) {
    IHA_ASSIGN_OR_RETURN(Tested one, Evaluate(candidate, baseline, pair, options));
    MetricVerdict& verdict = one.verdict;
    verdict.name = metrics[pair.baseline_entry][pair.baseline_metric];
    verdict.benchmark = entries[pair.baseline_entry];
    p.push_back(verdict.test.p_worse);
    report.metrics.push_back(verdict);
    tested.push_back(std::move(one));
  }
  const std::vector<double> adjusted = scoring::HolmAdjusted(p);
  for (size_t i = 0; i < pairs.size(); i++) {
    MetricVerdict& verdict = report.metrics[i];
    verdict.adjusted_p = adjusted[i];
    Judge(options, verdict);
    if (verdict.verdict != Verdict::kInconclusive) continue;
    const GateEntry& own = candidate.entries[pairs[i].candidate_entry];
    SayWhatDecides(own, own.metrics[pairs[i].candidate_metric],
                   baseline.entries[pairs[i].baseline_entry].metrics[pairs[i].baseline_metric], tested[i], verdict);
    verdict.reason += WhatDecides(verdict);
  }
  const std::optional<MarginRule>& rule = baseline.margin_rule;
  if (!options.margin.has_value() && rule.has_value() &&
      (rule->alpha != options.alpha || rule->power != options.power)) {
    report.notes.push_back(fmt::format(
        "the baseline's margins were fixed at alpha {} and power {}, this gate tests at {} and {}: export the baseline "
        "again for margins that an unchanged candidate passes with that power",
        rule->alpha, rule->power, options.alpha, options.power));
  }
  if (candidate.numerics_id != baseline.numerics_id) {
    report.notes.push_back(
        fmt::format("numerics differ: candidate {}, baseline {}", candidate.numerics_id, baseline.numerics_id));
  }
  JudgeAll(options, report);
  return report;
}

}  // namespace iha::reports
