#include "reports/layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/errors.h"
#include "reports/entry_names.h"

namespace iha::reports {
namespace {

// Which of a benchmark's entries a column shows. A header says how its number came about, so an entry that was decoded
// in another way gives no column.
enum class Decoding {
  kGreedy,   // the first with T = 0
  kSampled,  // T > 0; the one with the most samples, among equals the first
  kAny,      // the metric's name says it all (a vote over 16 is one over 16 samples)
};

// A printed column of the paper: which benchmark, and which of its metrics by the text that its name starts with.
struct PaperColumn {
  const char* header;
  const char* benchmark;
  const char* metric_prefix;  // "" = the first metric that is neither a vote nor pass@k with k > 1
  int decimals;
  Decoding decoding;
};

// After SFT: everything is sampled.
constexpr PaperColumn kTable1[] = {
    {"GSM8K P@1", "gsm8k", "", 1, Decoding::kSampled},
    {"GSM8K Maj@16", "gsm8k", "maj@16", 1, Decoding::kAny},
    {"MATH-500 P@1", "math500", "", 1, Decoding::kSampled},
    {"MATH-500 Maj@16", "math500", "maj@16", 1, Decoding::kAny},
    {"MBPP P@1", "mbpp", "mbpp.pass@1", 1, Decoding::kSampled},
    {"MBPP P@10", "mbpp", "mbpp.pass@10", 1, Decoding::kSampled},
};
// Pre-trained: exact match is greedy; the paper doesn't say how its code columns were decoded.
constexpr PaperColumn kTable2[] = {
    {"GSM8K EM", "gsm8k", "", 2, Decoding::kGreedy},
    {"GSM8K Maj@5", "gsm8k", "maj@5", 2, Decoding::kAny},
    {"MATH-500 EM", "math500", "", 2, Decoding::kGreedy},
    {"MBPP P@1", "mbpp", "mbpp.pass@1", 1, Decoding::kAny},
    {"HumanEval P@1", "humaneval", "humaneval.pass@1", 1, Decoding::kAny},
};

bool IsVote(const std::string& metric) { return metric.starts_with("maj@"); }

// "pass@1" must not match "pass@10": the prefix ends where the metric's name or its options end.
bool Matches(const std::string& metric, const std::string& prefix) {
  if (prefix.empty()) return !IsVote(metric) && metric.find("pass@") == std::string::npos;
  return metric.starts_with(prefix) && (metric.size() == prefix.size() || metric[prefix.size()] == '?');
}

bool Fits(const SamplingParams& sampling, Decoding decoding) {
  return decoding == Decoding::kAny || (sampling.temperature > 0) == (decoding == Decoding::kSampled);
}

// What the column could show, in the order of the entries; where the samples decide, of those with the most.
std::vector<Column> Fitting(const SweepSpec& spec, const PaperColumn& paper) {
  std::vector<Column> found;
  for (size_t e = 0; e < spec.entries.size(); e++) {
    const SweepEntry& entry = spec.entries[e];
    if (entry.benchmark.name != paper.benchmark || !Fits(entry.sampling, paper.decoding)) continue;
    const auto metric = std::find_if(entry.metrics.begin(), entry.metrics.end(),
                                     [&](const std::string& name) { return Matches(name, paper.metric_prefix); });
    if (metric == entry.metrics.end()) continue;
    if (paper.decoding == Decoding::kSampled && !found.empty()) {
      const int most = spec.entries[found.front().entry].sampling.samples;
      if (entry.sampling.samples < most) continue;
      if (entry.sampling.samples > most) found.clear();
    }
    found.push_back({paper.header, e, *metric, paper.decimals});
  }
  return found;
}

std::vector<Column> PaperColumns(const SweepSpec& spec, std::span<const PaperColumn> wanted) {
  std::vector<Column> columns;
  for (const PaperColumn& paper : wanted) {
    std::vector<Column> fitting = Fitting(spec, paper);
    if (!fitting.empty()) columns.push_back(std::move(fitting.front()));
  }
  return columns;
}

// nullopt: not a layout; empty: generic.
std::optional<std::span<const PaperColumn>> PaperLayout(const std::string& layout) {
  if (layout == "generic") return std::span<const PaperColumn>();
  if (layout == "table1") return kTable1;
  if (layout == "table2") return kTable2;
  return std::nullopt;
}

absl::Status UnknownLayout(const std::string& layout) {
  return InvalidArgument("--layout \"{}\": unknown; expected generic, table1 or table2", layout);
}

std::vector<Column> GenericColumns(const SweepSpec& spec) {
  const std::vector<std::vector<std::string>> names = MetricNames(Named(spec.entries));
  std::vector<Column> columns;
  for (size_t e = 0; e < spec.entries.size(); e++) {
    for (size_t m = 0; m < names[e].size(); m++) columns.push_back({names[e][m], e, spec.entries[e].metrics[m], 2});
  }
  return columns;
}

}  // namespace

absl::StatusOr<std::vector<Column>> ColumnsOf(const SweepSpec& spec, const std::string& layout) {
  const auto paper = PaperLayout(layout);
  if (!paper.has_value()) return UnknownLayout(layout);
  std::vector<Column> columns = paper->empty() ? GenericColumns(spec) : PaperColumns(spec, *paper);
  if (columns.empty()) {
    return InvalidArgument("--layout {}: the sweep has none of its columns; use --layout generic", layout);
  }
  return columns;
}

std::vector<std::string> LeftOut(const SweepSpec& spec, const std::string& layout) {
  std::vector<std::string> notes;
  for (const PaperColumn& paper : PaperLayout(layout).value_or(std::span<const PaperColumn>())) {
    if (!Fitting(spec, paper).empty()) continue;
    const char* how = paper.decoding == Decoding::kGreedy    ? "a greedy entry of "
                      : paper.decoding == Decoding::kSampled ? "a sampled entry (temperature above 0) of "
                                                             : "an entry of ";
    const std::string metric = *paper.metric_prefix == '\0' ? "" : fmt::format(" with {}", paper.metric_prefix);
    notes.push_back(fmt::format("column {} is left out: it needs {}{}{}", paper.header, how, paper.benchmark, metric));
  }
  return notes;
}

std::vector<std::string> AlsoFitting(const SweepSpec& spec, const std::string& layout) {
  const std::vector<std::string> names = EntryNames(Named(spec.entries));
  std::vector<std::string> notes;
  for (const PaperColumn& paper : PaperLayout(layout).value_or(std::span<const PaperColumn>())) {
    const std::vector<Column> fitting = Fitting(spec, paper);
    std::vector<std::string> others;
    for (size_t i = 1; i < fitting.size(); i++) others.push_back(names[fitting[i].entry]);
    if (others.empty()) continue;
    notes.push_back(fmt::format("column {} shows {}; not shown: {} (--layout generic shows all)", paper.header,
                                names[fitting.front().entry], fmt::join(others, ", ")));
  }
  return notes;
}

absl::StatusOr<std::vector<PaperHeader>> HeadersOf(const std::string& layout) {
  const auto paper = PaperLayout(layout);
  if (!paper.has_value()) return UnknownLayout(layout);
  std::vector<PaperHeader> headers;
  for (const PaperColumn& column : *paper) headers.push_back({column.header, column.decimals});
  return headers;
}

}  // namespace iha::reports
