// Which parts of two runs may be compared, and what must be equal for it.
#include <fmt/format.h>

#include <algorithm>

#include "benchmarks/scoring/ruler_means.h"
#include "common/counted.h"
#include "common/errors.h"
#include "common/nearest.h"
#include "common/status_macros.h"
#include "reports/gate.h"

namespace iha::reports {
namespace {

struct Difference {
  std::string field;
  std::string candidate;
  std::string baseline;
};

std::string Short(const Digest& digest) { return digest.Hex().substr(0, 16); }

class Differences {
 public:
  template <class T>
  void Check(const std::string& field, const T& candidate, const T& baseline) {
    if (candidate == baseline) return;
    found_.push_back({field, fmt::format("{}", candidate), fmt::format("{}", baseline)});
  }
  void Check(const std::string& field, const Digest& candidate, const Digest& baseline) {
    if (candidate != baseline) found_.push_back({field, Short(candidate), Short(baseline)});
  }
  std::vector<Difference> Take() && { return std::move(found_); }

 private:
  std::vector<Difference> found_;
};

std::string OptionOf(const BenchmarkRef& ref, const std::string& name) {
  const auto option = ref.options.find(name);
  return option == ref.options.end() ? "(none)" : option->second;
}

// Everything that decides what is asked and how it is judged. What a user set comes before what follows from it.
std::vector<Difference> Compare(const GateEntry& a, const GateEntry& b) {
  Differences found;
  for (const auto* options : {&a.benchmark.options, &b.benchmark.options}) {
    for (const auto& [name, value] : *options) {
      const bool seen = options == &b.benchmark.options && a.benchmark.options.contains(name);
      if (!seen) found.Check("option " + name, OptionOf(a.benchmark, name), OptionOf(b.benchmark, name));
    }
  }
  found.Check("temperature", a.sampling.temperature, b.sampling.temperature);
  found.Check("top_p", a.sampling.top_p, b.sampling.top_p);
  found.Check("top_k", a.sampling.top_k, b.sampling.top_k);
  found.Check("samples", a.sampling.samples, b.sampling.samples);
  found.Check("seed", a.sampling.seed, b.sampling.seed);
  found.Check("max_new_tokens", a.sampling.max_new_tokens, b.sampling.max_new_tokens);
  found.Check("items", a.planned, b.planned);
  found.Check("benchmark version", a.benchmark_version, b.benchmark_version);
  found.Check("grader version", a.grader_version, b.grader_version);
  found.Check("data digest", a.data_digest, b.data_digest);
  found.Check("prompt digest", a.prompt_digest, b.prompt_digest);
  return std::move(found).Take();
}

// Why the model's own tokenizer decides what is asked, or nullptr where it does not. Own questions have `form`, since
// their `prompt` is a template.
const char* WhyOfTokenizer(const GateEntry& entry) {
  if (scoring::ParseRulerCell(entry.benchmark.name).has_value()) return "it measures the length of the prompts";
  const bool own = entry.benchmark.options.contains("form");
  const bool chat = OptionOf(entry.benchmark, own ? "form" : "prompt").starts_with("chat");
  return chat && !entry.benchmark.name.starts_with("choice:") ? "its chat template renders the prompts" : nullptr;
}

// The candidate's entries that equal one of the baseline's (called `name`) in all that must be equal, at least one: a
// sweep may ask for the metrics of one setting in several entries.
absl::StatusOr<std::vector<size_t>> EqualEntries(const GateRun& candidate, const GateRun& baseline, size_t index,
                                                 const std::string& name) {
  const GateEntry& wanted = baseline.entries[index];
  std::vector<size_t> equal;
  std::vector<Difference> fewest;
  for (size_t e = 0; e < candidate.entries.size(); e++) {
    if (candidate.entries[e].benchmark.name != wanted.benchmark.name) continue;
    std::vector<Difference> differences = Compare(candidate.entries[e], wanted);
    if (differences.empty()) equal.push_back(e);
    if (fewest.empty() || differences.size() < fewest.size()) fewest = std::move(differences);
  }
  if (equal.empty() && fewest.empty()) {
    return FailedPrecondition(
        "not comparable: {}: the candidate has not run this benchmark; run it, or leave it out "
        "with --metrics",
        name);
  }
  if (equal.empty()) {
    const Difference& first = fewest.front();
    return FailedPrecondition(
        "not comparable: {}: {}: candidate {}, baseline {}; run the candidate with the baseline's "
        "settings",
        name, first.field, first.candidate, first.baseline);
  }
  // The chat template is among the files that the tokenizer's digest covers.
  const char* why = WhyOfTokenizer(wanted);
  if (why != nullptr && candidate.tokenizer != baseline.tokenizer) {
    return FailedPrecondition(
        "not comparable: {}: tokenizer digest ({}): candidate {}, baseline {}; give both models the same tokenizer "
        "files",
        name, why, Short(candidate.tokenizer), Short(baseline.tokenizer));
  }
  return equal;
}

// The metric `name` of one of the candidate's `entries`, as the pair's first halves.
std::optional<PairedMetric> FindMetric(const GateRun& candidate, const std::vector<size_t>& entries,
                                       const std::string& name) {
  for (const size_t e : entries) {
    const auto& own = candidate.entries[e].metrics;
    const auto same =
        std::find_if(own.begin(), own.end(), [&](const GateMetric& metric) { return metric.name == name; });
    if (same != own.end()) return PairedMetric{e, 0, static_cast<size_t>(same - own.begin()), 0};
  }
  return std::nullopt;
}

bool Chosen(const std::vector<std::string>& metrics, const std::string& name) {
  return metrics.empty() || std::find(metrics.begin(), metrics.end(), name) != metrics.end();
}

absl::Status CheckNames(const GateRun& baseline, const std::vector<std::string>& metrics) {
  std::vector<std::string> known;
  for (const GateEntry& entry : baseline.entries) {
    for (const GateMetric& metric : entry.metrics) {
      if (std::find(known.begin(), known.end(), metric.name) == known.end()) known.push_back(metric.name);
    }
  }
  for (const std::string& name : metrics) {
    if (std::find(known.begin(), known.end(), name) == known.end()) return UnknownName("metric", name, known);
  }
  return absl::OkStatus();
}

// A pass@k with k above the samples has no value for anybody, nor have items that nobody could grade.
bool Undefined(const GateEntry& entry, size_t metric) {
  return !entry.items.empty() && std::none_of(entry.items.begin(), entry.items.end(),
                                              [&](const GateItem& item) { return item.values[metric].has_value(); });
}

}  // namespace

absl::StatusOr<std::vector<PairedMetric>> PairMetrics(const GateRun& candidate, const GateRun& baseline,
                                                      const std::vector<std::string>& metrics,
                                                      std::vector<std::string>& notes) {
  IHA_RETURN_IF_ERROR(CheckNames(baseline, metrics));
  const std::vector<NamedEntry> named = Named(baseline);
  const std::vector<std::string> entry_names = EntryNames(named);
  const std::vector<std::vector<std::string>> metric_names = MetricNames(named);
  std::vector<PairedMetric> pairs;
  std::vector<bool> used(candidate.entries.size(), false);
  for (size_t b = 0; b < baseline.entries.size(); b++) {
    const GateEntry& entry = baseline.entries[b];
    const bool wanted = std::any_of(entry.metrics.begin(), entry.metrics.end(),
                                    [&](const GateMetric& metric) { return Chosen(metrics, metric.name); });
    if (!wanted) continue;
    IHA_ASSIGN_OR_RETURN(const std::vector<size_t> equal, EqualEntries(candidate, baseline, b, entry_names[b]));
    for (const size_t c : equal) used[c] = true;
    for (size_t m = 0; m < entry.metrics.size(); m++) {
      const std::string& name = entry.metrics[m].name;
      if (!Chosen(metrics, name)) continue;
      if (Undefined(entry, m)) {
        notes.push_back(fmt::format("{}: no item of the baseline has a value (of {} an item), left out",
                                    metric_names[b][m], Counted(entry.sampling.samples, "sample")));
        continue;
      }
      auto pair = FindMetric(candidate, equal, name);
      if (!pair.has_value()) {
        return FailedPrecondition(
            "not comparable: {}: metric {}: only the baseline has it; run the candidate with it, "
            "or leave it out with --metrics",
            entry_names[b], name);
      }
      pair->baseline_entry = b;
      pair->baseline_metric = m;
      // Counted twice it would weigh twice in the correction over the family.
      const bool twice = std::any_of(pairs.begin(), pairs.end(), [&](const PairedMetric& other) {
        return other.candidate_entry == pair->candidate_entry && other.candidate_metric == pair->candidate_metric;
      });
      if (!twice) pairs.push_back(*pair);
    }
  }
  const std::vector<std::string> names = EntryNames(Named(candidate));
  for (size_t c = 0; c < candidate.entries.size(); c++) {
    if (metrics.empty() && !used[c]) {
      notes.push_back(fmt::format("{}: only the candidate has it, not compared", names[c]));
    }
  }
  if (pairs.empty()) return FailedPrecondition("nothing to compare: no metric of the baseline has values");
  return pairs;
}

namespace {

absl::Status CheckWhole(const GateRun& run, size_t index, size_t metric) {
  const GateEntry& entry = run.entries[index];
  int64_t have = 0;
  for (const GateItem& item : entry.items) have += item.values[metric].has_value() ? 1 : 0;
  if (have == entry.planned) return absl::OkStatus();
  return FailedPrecondition(
      "{}: {}: {} of {} without a value; finish the sweep first (run it again with the same "
      "arguments), or leave the metric out with --metrics",
      run.model, MetricNames(Named(run))[index][metric], entry.planned - have, Counted(entry.planned, "item"));
}

}  // namespace

scoring::Rational MeanOf(const std::vector<Score>& scores) {
  scoring::Rational sum;
  for (const Score& score : scores) sum += scoring::Rational(score);
  return sum / scoring::Rational(static_cast<int64_t>(scores.size()));
}

absl::StatusOr<PairedValues> ValuesOf(const GateRun& candidate, const GateRun& baseline, const PairedMetric& pair) {
  const GateEntry& a = candidate.entries[pair.candidate_entry];
  const GateEntry& b = baseline.entries[pair.baseline_entry];
  IHA_RETURN_IF_ERROR(CheckWhole(candidate, pair.candidate_entry, pair.candidate_metric));
  IHA_RETURN_IF_ERROR(CheckWhole(baseline, pair.baseline_entry, pair.baseline_metric));
  PairedValues values;
  for (size_t i = 0; i < a.items.size(); i++) {
    if (a.items[i].index != b.items[i].index || a.items[i].id != b.items[i].id) {
      return FailedPrecondition("not comparable: {}: item {}: candidate \"{}\", baseline \"{}\"", a.benchmark.name,
                                a.items[i].index, a.items[i].id, b.items[i].id);
    }
    values.candidate.push_back(*a.items[i].values[pair.candidate_metric]);
    values.baseline.push_back(*b.items[i].values[pair.baseline_metric]);
    values.identical = values.identical && a.items[i].outputs == b.items[i].outputs;
  }
  values.identical = values.identical && values.candidate == values.baseline;
  return values;
}

}  // namespace iha::reports
