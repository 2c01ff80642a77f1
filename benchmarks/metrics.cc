// Metrics of one item from its samples' grades: means, votes, pass@k.
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>

#include "benchmarks/benchmark.h"
#include "benchmarks/graders/lines.h"
#include "benchmarks/scoring/rational.h"
#include "benchmarks/scoring/vote.h"
#include "common/errors.h"
#include "common/nearest.h"
#include "common/status_macros.h"

namespace iha::benchmarks {
namespace {

using scoring::Rational;
using scoring::VoteRule;

enum class Kind { kMean, kMajority, kPass };

// "gsm8k.robust", "maj@5?metric=gsm8k.robust&rule=lm_eval", "pass@5?metric=...", "humaneval.pass@5".
struct MetricSpec {
  Kind kind = Kind::kMean;
  std::string base;  // "" while the default is not filled in
  int64_t k = 1;     // kAllK: "humaneval.pass@k", until ResolveMetrics writes it out
  VoteRule rule = VoteRule::kNsTieMean;
};

constexpr int64_t kMaxSamples = 1 << 20;
constexpr int64_t kAllK = 0;
// Ends the base metrics of programs, which have a value for each k.
constexpr std::string_view kFamilyEnd = ".pass@k";

absl::Status ReadK(const std::string& metric, std::string_view text, int64_t& k) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), k);
  if (error == std::errc() && end == text.data() + text.size() && k >= 1 && k <= kMaxSamples) return absl::OkStatus();
  return InvalidArgument("metric '{}': found k = '{}', expected an integer from 1 to {}", metric, text, kMaxSamples);
}

absl::StatusOr<MetricSpec> ParseMetric(const std::string& text) {
  IHA_ASSIGN_OR_RETURN(const BenchmarkRef parts, ParseBenchmarkRef(text));
  MetricSpec spec;
  const bool majority = parts.name.starts_with("maj@");
  if (!majority && !parts.name.starts_with("pass@")) {
    if (!parts.options.empty()) {
      return InvalidArgument("metric '{}': only maj@K and pass@K take options", text);
    }
    spec.base = parts.name;
    const size_t family = parts.name.rfind(".pass@");
    if (family == std::string::npos) return spec;
    spec.kind = Kind::kPass;
    spec.base = parts.name.substr(0, family) + std::string(kFamilyEnd);
    const std::string_view k = std::string_view(parts.name).substr(family + kFamilyEnd.size() - 1);
    spec.k = kAllK;
    if (k != "k") IHA_RETURN_IF_ERROR(ReadK(text, k, spec.k));
    return spec;
  }
  spec.kind = majority ? Kind::kMajority : Kind::kPass;
  const std::string_view k = std::string_view(parts.name).substr(majority ? 4 : 5);
  IHA_RETURN_IF_ERROR(ReadK(text, k, spec.k));
  for (const auto& [name, value] : parts.options) {
    if (name == "metric") {
      spec.base = value;
    } else if (name == "rule" && majority) {
      IHA_ASSIGN_OR_RETURN(spec.rule, scoring::ParseVoteRule(value));
    } else {
      return InvalidArgument("metric '{}': unknown option '{}'; known: metric{}", text, name, majority ? ", rule" : "");
    }
  }
  return spec;
}

std::string NameOf(const MetricSpec& spec) {
  if (spec.kind == Kind::kMean) return spec.base;
  if (spec.base.ends_with(kFamilyEnd)) return spec.base.substr(0, spec.base.size() - 1) + std::to_string(spec.k);
  BenchmarkRef parts{fmt::format("{}@{}", spec.kind == Kind::kMajority ? "maj" : "pass", spec.k),
                     {{"metric", spec.base}}};
  if (spec.rule != VoteRule::kNsTieMean) parts.options.emplace("rule", scoring::NameOf(spec.rule));
  return ToString(parts);
}

// One grade a sample, all of the base metric `name`.
absl::StatusOr<std::vector<const SampleGrade*>> GradesOf(const std::string& name,
                                                         const std::vector<std::vector<SampleGrade>>& grades) {
  std::vector<const SampleGrade*> found;
  for (const std::vector<SampleGrade>& sample : grades) {
    const auto it = std::find_if(sample.begin(), sample.end(), [&](const SampleGrade& g) { return g.metric == name; });
    if (it == sample.end()) {
      std::vector<std::string> known;
      for (const SampleGrade& grade : sample) known.push_back(grade.metric);
      return InvalidArgument("metric '{}': sample {} has no such grade; it has {}", name, found.size(),
                             fmt::join(known, ", "));
    }
    found.push_back(&*it);
  }
  return found;
}

Rational MeanOf(const std::vector<const SampleGrade*>& grades) {
  Rational sum;
  for (const SampleGrade* grade : grades) sum += Rational(grade->score);
  return sum / Rational(static_cast<int64_t>(grades.size()));
}

absl::Status FillMajority(const MetricSpec& spec, const std::vector<const SampleGrade*>& grades, ItemValue& value) {
  IHA_ASSIGN_OR_RETURN(const scoring::VoteResult vote,
                       scoring::Vote(RuleFor(spec.rule, spec.base), spec.k, BallotsOf(grades)));
  value.score = vote.value.ToScore();
  value.tie = vote.tie.ToScore();
  value.winner = vote.winner.value_or("");
  return absl::OkStatus();
}

absl::Status FillPass(const MetricSpec& spec, const std::vector<const SampleGrade*>& grades, ItemValue& value) {
  int64_t correct = 0;
  for (const SampleGrade* grade : grades) {
    if (grade->score.num != 0 && grade->score != Score{1, 1}) {
      return InvalidArgument("metric '{}': {} gave {}/{}, but pass@k needs scores of 0 or 1", NameOf(spec), spec.base,
                             grade->score.num, grade->score.den);
    }
    correct += grade->score.num;
  }
  const auto samples = static_cast<int64_t>(grades.size());
  value.score = scoring::PassAtK(samples, correct, spec.k)->ToScore();  // defined: the caller checked k <= samples
  return absl::OkStatus();
}

int64_t ToSettle(const MetricSpec& spec, const std::vector<const SampleGrade*>& grades) {
  return scoring::SamplesToSettle(RuleFor(spec.rule, spec.base), spec.k, BallotsOf(grades));
}

enum class Prefix { kUndefined, kValueIfSettled };

absl::StatusOr<ItemValue> ValueOf(const std::string& name, const std::vector<std::vector<SampleGrade>>& grades,
                                  Prefix prefix) {
  IHA_ASSIGN_OR_RETURN(MetricSpec spec, ParseMetric(name));
  IHA_ASSIGN_OR_RETURN(const std::vector<const SampleGrade*> own, GradesOf(spec.base, grades));
  ItemValue value;
  value.metric = name;
  for (const SampleGrade* grade : own) {
    if (!grade->valid) ++value.invalid;
    if (grade->unscored != Unscored::kScored && value.unscored == Unscored::kScored) value.unscored = grade->unscored;
  }
  if (value.unscored != Unscored::kScored) return value;
  const auto samples = static_cast<int64_t>(own.size());
  const bool stopped = prefix == Prefix::kValueIfSettled && spec.kind == Kind::kMajority && spec.k > samples;
  if (stopped && ToSettle(spec, own) == 0) spec.k = samples;
  if (spec.kind != Kind::kMean && spec.k > samples) {
    value.unscored = Unscored::kUndefined;
    return value;
  }
  switch (spec.kind) {
    case Kind::kMean:
      value.score = MeanOf(own).ToScore();
      break;
    case Kind::kMajority:
      IHA_RETURN_IF_ERROR(FillMajority(spec, own, value));
      break;
    case Kind::kPass:
      IHA_RETURN_IF_ERROR(FillPass(spec, own, value));
      break;
  }
  return value;
}

absl::StatusOr<std::vector<ItemValue>> ValuesOf(const std::vector<std::string>& metrics,
                                                const std::vector<std::vector<SampleGrade>>& grades, Prefix prefix) {
  if (grades.empty()) return InvalidArgument("item values: the item has no samples");
  std::vector<ItemValue> values;
  values.reserve(metrics.size());
  for (const std::string& metric : metrics) {
    IHA_ASSIGN_OR_RETURN(ItemValue value, ValueOf(metric, grades, prefix));
    values.push_back(std::move(value));
  }
  return values;
}

// The fewest samples behind the first `taken` after which all votes may be settled.
absl::StatusOr<int64_t> MoreWanted(const SweepEntry& entry, const std::vector<std::vector<SampleGrade>>& grades,
                                   int64_t taken) {
  const std::vector<std::vector<SampleGrade>> first(grades.begin(), grades.begin() + taken);
  int64_t more = 0;
  for (const std::string& metric : entry.metrics) {
    IHA_ASSIGN_OR_RETURN(const MetricSpec spec, ParseMetric(metric));
    IHA_ASSIGN_OR_RETURN(const std::vector<const SampleGrade*> own, GradesOf(spec.base, first));
    const bool scored = std::all_of(own.begin(), own.end(),
                                    [](const SampleGrade* grade) { return grade->unscored == Unscored::kScored; });
    more = std::max(more, scored ? ToSettle(spec, own) : entry.sampling.samples - taken);
  }
  return more;
}

}  // namespace

absl::StatusOr<std::vector<ItemValue>> ItemValues(const std::vector<std::string>& metrics,
                                                  const std::vector<std::vector<SampleGrade>>& grades) {
  return ValuesOf(metrics, grades, Prefix::kUndefined);
}

absl::StatusOr<std::vector<ItemValue>> EntryValues(const SweepEntry& entry,
                                                   const std::vector<std::vector<SampleGrade>>& grades) {
  return ValuesOf(entry.metrics, grades, entry.stop_settled_votes ? Prefix::kValueIfSettled : Prefix::kUndefined);
}

absl::StatusOr<int64_t> SamplesWanted(const SweepEntry& entry, const std::vector<std::vector<SampleGrade>>& grades) {
  if (!entry.stop_settled_votes) return entry.sampling.samples;
  int64_t wanted = 0;
  while (wanted <= static_cast<int64_t>(grades.size())) {
    IHA_ASSIGN_OR_RETURN(const int64_t more, MoreWanted(entry, grades, wanted));
    if (more == 0) break;
    wanted += more;
  }
  return wanted;
}

absl::Status CheckVotesOnly(const SweepEntry& entry) {
  const int64_t samples = entry.sampling.samples;
  if (samples < 2) return InvalidArgument("{} samples an item; expected 2 or more", samples);
  for (const std::string& metric : entry.metrics) {
    IHA_ASSIGN_OR_RETURN(const MetricSpec spec, ParseMetric(metric));
    if (spec.kind == Kind::kMajority && spec.k == samples) continue;
    return InvalidArgument("metric '{}' is no vote over all {} samples; ask for it in an entry of its own", metric,
                           samples);
  }
  return absl::OkStatus();
}

absl::StatusOr<MetricNeeds> NeedsOf(const std::string& metric) {
  IHA_ASSIGN_OR_RETURN(MetricSpec spec, ParseMetric(metric));
  return MetricNeeds{.base = std::move(spec.base), .samples = spec.k};
}

std::vector<MetricInfo> BaseMetrics(const BenchmarkInfo& info, const std::vector<std::string>& metrics) {
  std::vector<std::string> bases;
  for (const std::string& name : metrics) {
    if (const auto spec = ParseMetric(name); spec.ok()) bases.push_back(spec->base);
  }
  std::vector<MetricInfo> needed;
  for (const MetricInfo& metric : info.metrics) {
    if (std::find(bases.begin(), bases.end(), metric.name) != bases.end()) needed.push_back(metric);
  }
  return needed;
}

namespace {

// "humaneval.pass@k": pass@1, and pass@samples where there are more.
std::vector<std::string> WrittenOut(const std::vector<std::string>& metrics, int32_t samples) {
  std::vector<std::string> written;
  for (const std::string& name : metrics) {
    if (!name.ends_with(kFamilyEnd) || name.find('?') != std::string::npos) {
      written.push_back(name);
      continue;
    }
    const std::string family = name.substr(0, name.size() - 1);
    written.push_back(family + "1");
    if (samples > 1) written.push_back(family + std::to_string(samples));
  }
  return written;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ResolveMetrics(const BenchmarkInfo& info, const SamplingParams& sampling,
                                                        const std::vector<std::string>& metrics) {
  std::vector<std::string> known;
  for (const MetricInfo& metric : info.metrics) known.push_back(metric.name);
  const std::string& first = info.default_metrics.front();

  std::vector<std::string> wanted = metrics;
  if (wanted.empty()) {
    wanted = info.default_metrics;
    if (sampling.samples > 1 && !info.runs_code) wanted.push_back(fmt::format("maj@{}", sampling.samples));
  }
  std::vector<std::string> resolved;
  for (const std::string& name : WrittenOut(wanted, sampling.samples)) {
    IHA_ASSIGN_OR_RETURN(MetricSpec spec, ParseMetric(name));
    if (spec.base.empty()) spec.base = first;
    if (std::find(known.begin(), known.end(), spec.base) == known.end()) {
      return Annotate(UnknownName("metric", spec.base, known), info.name);
    }
    if (info.runs_code && spec.kind == Kind::kMajority) {
      return InvalidArgument("{}: metric '{}': programs have no answers that could be voted on; take {}", info.name,
                             name, first);
    }
    resolved.push_back(NameOf(spec));
    if (std::count(resolved.begin(), resolved.end(), resolved.back()) > 1) {
      return InvalidArgument("{}: metric '{}' is given twice", info.name, resolved.back());
    }
  }
  return resolved;
}

}  // namespace iha::benchmarks
