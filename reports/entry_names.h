// entry_names.h: under which names entries and their metrics are shown: one rule for tables, gate, JUnit, annotations
// and compare.
//
// An entry is called by its benchmark, a metric by itself ("gsm8k.robust maj@5") with the benchmark in front where it
// does not name it ("gsm8k_demo gsm8k.robust"). Those that would be called alike get behind it the settings in which
// their entries differ ("T=0.6 k=16", "fewshot=8", "max_new_tokens=512"), and where none differs a number ("#2"), so
// that no two of one list have one name. Names depend on the list alone. Pure; thread: any.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/eval_types.h"

namespace iha::reports {

struct NamedEntry {
  std::string benchmark;
  std::map<std::string, std::string> settings;  // sampling, options, how many items
  std::vector<std::string> metrics;
};

// `items`: by which key and value the number of items is told ("limit", "none").
NamedEntry Named(const BenchmarkRef& benchmark, const SamplingParams& sampling,
                 const std::pair<std::string, std::string>& items, std::vector<std::string> metrics);
std::vector<NamedEntry> Named(const std::vector<SweepEntry>& entries);

// One for each entry.
std::vector<std::string> EntryNames(const std::vector<NamedEntry>& entries);

// One for each metric of each entry.
std::vector<std::vector<std::string>> MetricNames(const std::vector<NamedEntry>& entries);

}  // namespace iha::reports
