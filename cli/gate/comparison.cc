#include "cli/gate/comparison.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "benchmarks/ruler/grade.h"
#include "common/errors.h"
#include "common/status_macros.h"
#include "reports/gate.h"

namespace iha::cli {
namespace {

double AsDouble(const Score& score) { return static_cast<double>(score.num) / static_cast<double>(score.den); }

std::string Fraction(const Score& score) {
  return score.den == 1 ? std::to_string(score.num) : fmt::format("{}/{}", score.num, score.den);
}

bool ZeroOrOne(const std::vector<Score>& scores) {
  return std::all_of(scores.begin(), scores.end(), [](const Score& s) { return s.num == 0 || s.num == s.den; });
}

// `values.candidate` is B, `values.baseline` A.
ComparedMetric TestMetric(const reports::GateEntry& entry, const reports::PairedValues& values) {
  ComparedMetric out;
  out.a = reports::MeanOf(values.baseline);
  out.b = reports::MeanOf(values.candidate);
  out.identical = values.identical;
  const bool single = entry.sampling.samples == 1;
  out.test = scoring::ComparePaired(values.candidate, values.baseline, {.alpha = 0.025, .single_sample = single});
  if (single && ZeroOrOne(values.candidate) && ZeroOrOne(values.baseline)) {
    const scoring::McNemar exact = scoring::McNemarTest(out.test.better, out.test.worse);
    out.p_test = "mcnemar";
    out.p = exact.p;
    out.mid_p = exact.mid_p;
    return out;
  }
  std::vector<double> d;
  for (size_t i = 0; i < values.candidate.size(); i++) {
    const bool equal = values.candidate[i] == values.baseline[i];
    d.push_back(equal ? 0.0 : AsDouble(values.candidate[i]) - AsDouble(values.baseline[i]));
  }
  out.p_test = "sign_flip";
  out.p = scoring::SignFlipPValue(d);
  return out;
}

// An item whose value differs in one metric, before its texts are read.
struct Change {
  size_t pair = 0;
  int64_t index = 0;
  double size = 0.0;
};

std::vector<Change> ChangesOf(size_t pair, const reports::PairedValues& values) {
  std::vector<Change> changes;
  for (size_t i = 0; i < values.candidate.size(); i++) {
    if (values.candidate[i] == values.baseline[i]) continue;
    changes.push_back(
        {pair, static_cast<int64_t>(i), std::fabs(AsDouble(values.candidate[i]) - AsDouble(values.baseline[i]))});
  }
  return changes;
}

// An item may change in several metrics.
int64_t CountItems(const std::vector<reports::PairedMetric>& pairs, const std::vector<Change>& changes) {
  std::set<std::pair<size_t, int64_t>> items;
  for (const Change& change : changes) items.emplace(pairs[change.pair].baseline_entry, change.index);
  return static_cast<int64_t>(items.size());
}

// What one side's pass over its texts gathers.
struct ItemTexts {
  std::vector<std::string> texts;
  std::vector<FinishReason> finish;
  std::vector<std::vector<SampleGrade>> grades;
  Unscored unscored = Unscored::kScored;
};
using WantedItems = std::map<std::pair<size_t, int64_t>, ItemTexts>;  // by entry and index

// By which of A's entries each side's entries are compared. One of B's may serve two of A's of equal settings.
using ComparedAs = std::multimap<size_t, std::string>;

void CountOutcomes(const StoredItem& stored, const std::string& name, bool is_b, Comparison& comparison) {
  const auto taxonomy = [&](const std::string& metric) -> Taxonomy& {
    auto& both = comparison.taxonomy[{name, metric}];
    return is_b ? both.second : both.first;
  };
  if (stored.item.samples.empty()) taxonomy("")[NameOf(stored.item.unscored)]++;
  for (size_t s = 0; s < stored.item.samples.size(); s++) {
    for (const SampleGrade& grade : stored.item.samples[s].grades) {
      taxonomy(grade.metric)[OutcomeOf(grade, stored.generations[s].finish)]++;
    }
  }
}

absl::Status ReadSide(coordinator::Store& store, const RunName& name, bool is_b, const ComparedAs& compared_as,
                      WantedItems& wanted, Comparison& comparison) {
  return ReadStoredItems(store, name, [&](const StoredItem& stored) {
    const auto entry = static_cast<size_t>(stored.job.spec.entry_index);
    const auto [first, last] = compared_as.equal_range(entry);
    for (auto as = first; as != last; ++as) CountOutcomes(stored, as->second, is_b, comparison);
    const auto item = wanted.find({entry, stored.item.index});
    if (item == wanted.end()) return absl::OkStatus();
    item->second.unscored = stored.item.unscored;
    for (size_t s = 0; s < stored.item.samples.size(); s++) {
      item->second.texts.push_back(stored.generations[s].text);
      item->second.finish.push_back(stored.generations[s].finish);
      item->second.grades.push_back(stored.item.samples[s].grades);
    }
    return absl::OkStatus();
  });
}

const SampleGrade* GradeOf(const ItemTexts& item, size_t sample, const std::string& metric) {
  if (sample >= item.grades.size()) return nullptr;
  for (const SampleGrade& grade : item.grades[sample]) {
    if (grade.metric == metric) return &grade;
  }
  return nullptr;
}

// The first sample that the metric judges otherwise; 0 where no single one does (votes).
size_t DifferingSample(const ItemTexts& a, const ItemTexts& b, const std::string& metric) {
  for (size_t s = 0; s < std::min(a.texts.size(), b.texts.size()); s++) {
    const SampleGrade* left = GradeOf(a, s, metric);
    const SampleGrade* right = GradeOf(b, s, metric);
    if (left != nullptr && right != nullptr && left->score != right->score) return s;
  }
  return 0;
}

FlippedSide SideOf(const ItemTexts& item, size_t sample, const std::string& metric, const Score& value) {
  FlippedSide side{.value = Fraction(value), .outcome = NameOf(item.unscored), .text = ""};
  if (sample >= item.texts.size()) return side;
  side.text = item.texts[sample];
  const SampleGrade* grade = GradeOf(item, sample, metric);
  side.outcome = grade == nullptr ? NameOf(item.finish[sample]) : OutcomeOf(*grade, item.finish[sample]);
  return side;
}

void CheckExemplars(const std::vector<reports::PairedMetric>& pairs, const std::string& data_root,
                    Comparison& comparison) {
  for (const reports::PairedMetric& pair : pairs) {
    const reports::GateEntry& entry = comparison.a.entries[pair.baseline_entry];
    const std::string spec = benchmarks::ToString(entry.benchmark);
    if (comparison.leaks.contains(spec)) continue;
    auto& leaks = comparison.leaks[spec];
    const auto benchmark = benchmarks::OpenBenchmark(entry.benchmark, data_root);
    if (!benchmark.ok()) {
      comparison.notes.push_back(fmt::format("{}: exemplars not checked: {}", entry.benchmark.name,
                                             std::string(benchmark.status().message())));
      continue;
    }
    if (benchmarks::PromptDigest(**benchmark, entry.planned) != entry.prompt_digest) {
      comparison.notes.push_back(
          fmt::format("{}: exemplars not checked: this version and data give other prompts", entry.benchmark.name));
      continue;
    }
    auto found = benchmarks::FindExemplarLeaks(**benchmark, data_root, entry.planned);
    if (found.ok()) {
      leaks = *std::move(found);
    } else {
      comparison.notes.push_back(
          fmt::format("{}: exemplars not checked: {}", entry.benchmark.name, std::string(found.status().message())));
    }
  }
}

}  // namespace

std::string OutcomeOf(const SampleGrade& grade, FinishReason finish) {
  if (grade.unscored != Unscored::kScored) return NameOf(grade.unscored);
  if (grade.score.num == grade.score.den) return "correct";
  // Of programs, what was extracted is the sandbox's word: "failed: TYPE".
  const bool program = grade.metric.find("pass@") != std::string::npos;
  const std::string word = grade.extracted.substr(0, grade.extracted.find(':'));
  if (program && word == "timed out") return word;
  if (finish == FinishReason::kLength) return "truncated";
  // RULER looks for references anywhere in a text: no hit is no lack of an answer.
  if (!grade.valid && grade.metric != benchmarks::ruler::kMetric) return "no_answer";
  if (program) return word;
  return grade.score.num > 0 ? "partly" : "wrong";
}

absl::StatusOr<Comparison> CompareRuns(coordinator::Store& store, const RunName& a, const RunName& b,
                                       const CompareOptions& options) {
  Comparison out;
  IHA_ASSIGN_OR_RETURN(out.a, ReadStoredRun(store, a));
  IHA_ASSIGN_OR_RETURN(out.b, ReadStoredRun(store, b));
  const std::string advice = "explain shows the texts of an item";
  IHA_RETURN_IF_ERROR(reports::CheckUnstopped(out.a.item_order, "A's sweep", advice));
  IHA_RETURN_IF_ERROR(reports::CheckUnstopped(out.b.item_order, "B's sweep", advice));
  IHA_ASSIGN_OR_RETURN(const auto pairs, reports::PairMetrics(out.b, out.a, options.metrics, out.notes));
  const std::vector<reports::NamedEntry> named = reports::Named(out.a);
  const std::vector<std::string> entries = reports::EntryNames(named);
  const std::vector<std::vector<std::string>> metrics = reports::MetricNames(named);
  std::vector<Change> changes;
  for (size_t p = 0; p < pairs.size(); p++) {
    const reports::GateEntry& entry = out.a.entries[pairs[p].baseline_entry];
    IHA_ASSIGN_OR_RETURN(const reports::PairedValues values, reports::ValuesOf(out.b, out.a, pairs[p]));
    ComparedMetric metric = TestMetric(entry, values);
    metric.entry = pairs[p].baseline_entry;
    metric.name = metrics[pairs[p].baseline_entry][pairs[p].baseline_metric];
    metric.benchmark = entries[pairs[p].baseline_entry];
    metric.metric = entry.metrics[pairs[p].baseline_metric].name;
    out.metrics.push_back(std::move(metric));
    const std::vector<Change> more = ChangesOf(p, values);
    changes.insert(changes.end(), more.begin(), more.end());
  }
  std::stable_sort(changes.begin(), changes.end(), [](const Change& x, const Change& y) { return x.size > y.size; });
  out.flipped = static_cast<int64_t>(changes.size());
  out.flipped_items = CountItems(pairs, changes);
  if (options.flips > 0 && out.flipped > options.flips) changes.resize(static_cast<size_t>(options.flips));
  WantedItems of_a, of_b;
  for (const Change& change : changes) {
    of_a[{pairs[change.pair].baseline_entry, change.index}];
    of_b[{pairs[change.pair].candidate_entry, change.index}];
  }
  ComparedAs as_a, as_b;
  std::set<size_t> seen;
  for (const reports::PairedMetric& pair : pairs) {
    if (!seen.insert(pair.baseline_entry).second) continue;
    as_a.emplace(pair.baseline_entry, entries[pair.baseline_entry]);
    as_b.emplace(pair.candidate_entry, entries[pair.baseline_entry]);
  }
  IHA_RETURN_IF_ERROR(ReadSide(store, a, false, as_a, of_a, out));
  IHA_RETURN_IF_ERROR(ReadSide(store, b, true, as_b, of_b, out));
  for (const Change& change : changes) {
    const reports::PairedMetric& pair = pairs[change.pair];
    const std::string& metric = out.metrics[change.pair].metric;
    const ItemTexts& left = of_a[{pair.baseline_entry, change.index}];
    const ItemTexts& right = of_b[{pair.candidate_entry, change.index}];
    const auto& row = out.a.entries[pair.baseline_entry].items[static_cast<size_t>(change.index)];
    const auto& other = out.b.entries[pair.candidate_entry].items[static_cast<size_t>(change.index)];
    const size_t sample = DifferingSample(left, right, metric);
    out.flips.push_back({.name = out.metrics[change.pair].name,
                         .benchmark = out.metrics[change.pair].benchmark,
                         .metric = metric,
                         .index = change.index,
                         .item_id = row.id,
                         .sample = static_cast<int64_t>(sample),
                         .a = SideOf(left, sample, metric, *row.values[pair.baseline_metric]),
                         .b = SideOf(right, sample, metric, *other.values[pair.candidate_metric])});
  }
  CheckExemplars(pairs, options.data_root, out);
  return out;
}

}  // namespace iha::cli
