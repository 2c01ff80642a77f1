#include <algorithm>
#include <string>
#include <vector>

#include "benchmarks/benchmark.h"
#include "cli/sweep_file.h"
#include "common/errors.h"
#include "common/nearest.h"
#include "common/status_macros.h"

namespace iha::cli {
namespace {

constexpr const char kTable1[] = R"json({
  // The IHA paper's Table 1: checkpoints after SFT, 16 samples an item at T = 0.6.
  // Model names are folders below the workers' --models-root.
  "version": 1,
  "models": ["iha", "global", "global-local", "talking-heads", "diff"],
  "benchmarks": [
    // P@1 is the mean over the 16 samples; Maj@16 the vote over them.
    {"spec": "gsm8k?fewshot=5", "samples": 16, "temperature": 0.6,
     "metrics": ["gsm8k.flexible_extract", "maj@16?metric=gsm8k.flexible_extract"]},
    {"spec": "math500", "samples": 16, "temperature": 0.6,
     "metrics": ["math.minerva", "maj@16?metric=math.minerva"]},
    {"spec": "mbpp", "samples": 16, "temperature": 0.6, "metrics": ["mbpp.pass@1", "mbpp.pass@10"]}
  ],
  "numerics": {"backend": "cpu-exact"}
}
)json";

constexpr const char kTable2[] = R"json({
  // The IHA paper's Table 2: pre-trained checkpoints. EM is greedy; Maj@5 is a second job at T = 0.6.
  // Shots: GSM8K 5, MATH-500 its 4 exemplars, MBPP its 3, HumanEval 0.
  "version": 1,
  "models": ["iha", "global", "global-local", "talking-heads", "diff"],
  "benchmarks": [
    {"spec": "gsm8k?fewshot=5", "temperature": 0, "metrics": ["gsm8k.flexible_extract"]},
    {"spec": "gsm8k?fewshot=5", "samples": 5, "temperature": 0.6, "metrics": ["maj@5?metric=gsm8k.flexible_extract"]},
    {"spec": "math500", "temperature": 0, "metrics": ["math.minerva"]},
    {"spec": "mbpp", "temperature": 0, "metrics": ["mbpp.pass@1"]},
    {"spec": "humaneval", "temperature": 0, "max_new_tokens": 1024, "metrics": ["humaneval.pass@1"]}
  ],
  "numerics": {"backend": "cpu-exact"}
}
)json";

constexpr const char kRuler[] = R"json({
  // The IHA paper's Figure 2: RULER after 64k fine-tuning; multi-key retrieval at 4k, 8k, 16k and the overall mean.
  "version": 1,
  "models": ["iha", "global", "global-local", "diff"],
  "benchmarks": [
    {"spec": "ruler@4096,8192,16384", "temperature": 0}
  ],
  "numerics": {"backend": "cpu-exact"}
}
)json";

// "ruler:TASK@4096,8192" to "ruler".
std::string FamilyOf(const std::string& benchmark) { return benchmark.substr(0, benchmark.find_first_of(":@")); }

// A comment that names what `run` and `submit` of this build would refuse; empty when there is nothing.
absl::StatusOr<std::string> NoteOnMissing(const std::string& example, const std::string& name) {
  IHA_ASSIGN_OR_RETURN(const SweepSpec spec, ParseSweep(example, name));
  std::vector<std::string> known;
  for (const benchmarks::BenchmarkInfo& info : benchmarks::ListBenchmarks()) known.push_back(FamilyOf(info.name));
  std::string missing;
  for (const SweepEntry& entry : spec.entries) {
    const std::string family = FamilyOf(entry.benchmark.name);
    if (std::find(known.begin(), known.end(), family) != known.end()) continue;
    known.push_back(family);  // once is enough
    missing += (missing.empty() ? "" : ", ") + family;
  }
  if (missing.empty()) return missing;
  return fmt::format(
      "// Not in this build: {}. Take their entries out to run the rest (iha-eval bench list shows what there is).\n",
      missing);
}

}  // namespace

absl::StatusOr<std::string> ExampleSweep(const std::string& name) {
  const std::pair<const char*, const char*> examples[] = {{"table1", kTable1}, {"table2", kTable2}, {"ruler", kRuler}};
  for (const auto& [known, text] : examples) {
    if (name != known) continue;
    IHA_ASSIGN_OR_RETURN(const std::string note, NoteOnMissing(text, name));
    return note + text;
  }
  static const std::string known[] = {"table1", "table2", "ruler"};
  return UnknownName("sweep example", name, known);
}

}  // namespace iha::cli
