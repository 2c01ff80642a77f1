#include "cli/run/spec_notes.h"

#include <fmt/ranges.h>

#include <set>

#include "benchmarks/benchmark.h"
#include "benchmarks/graders/graders.h"

namespace iha::cli {
namespace {

// What the metric can't be without; nothing of what is no metric, which is refused elsewhere.
benchmarks::MetricNeeds Needs(const std::string& metric) {
  return benchmarks::NeedsOf(metric).value_or(benchmarks::MetricNeeds());
}

}  // namespace

std::vector<std::string> NotesOn(const SweepSpec& spec) {
  std::vector<std::string> notes;
  for (const SweepEntry& entry : spec.entries) {
    const std::string& name = entry.benchmark.name;
    const int32_t samples = entry.sampling.samples;
    if (samples > 1 && entry.sampling.temperature == 0) {
      notes.push_back(fmt::format("{}: {} samples at temperature 0 are all equal; give --temperature", name, samples));
    }
    for (const std::string& metric : entry.metrics) {
      const int64_t needed = Needs(metric).samples;
      if (needed <= samples) continue;
      notes.push_back(
          fmt::format("{}: {} of {} {} an item is undefined (k > n), its cells will be empty; give --samples {}", name,
                      metric, samples, samples == 1 ? "sample" : "samples", needed));
    }
  }
  return notes;
}

std::vector<std::string> GraderNotes(const SweepSpec& spec, const std::string& libraries) {
  std::set<std::string> wanted;
  for (const SweepEntry& entry : spec.entries) {
    for (const std::string& metric : entry.metrics) {
      const std::string base = Needs(metric).base;
      const auto info = benchmarks::Graders::Find(base);
      if (info.ok() && !info->pure) wanted.insert(base);
    }
  }
  std::vector<std::string> notes;
  if (wanted.empty()) return notes;
  if (libraries.empty()) {
    notes.push_back(
        fmt::format("{}: will be unscored without the graders' Python libraries; give --graders DIR (`./dev "
                    "deps test` makes .deps/graders), or grade later with iha-eval regrade",
                    fmt::join(wanted, ", ")));
    return notes;
  }
  benchmarks::Graders graders({.libraries = libraries});
  for (const std::string& metric : wanted) {
    const absl::Status asked = graders.Equal(metric, "1", "1").status();
    if (asked.ok()) continue;
    notes.push_back(fmt::format("{}: will be unscored, --graders {} can't be used: {}", metric, libraries,
                                std::string(asked.message())));
  }
  return notes;
}

}  // namespace iha::cli
