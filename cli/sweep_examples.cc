#include <fmt/ranges.h>

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

struct Entry {
  const char* comment;  // "" or one line
  const char* json;
};

struct Example {
  const char* name;
  const char* intro;  // comment lines
  const char* models;
  std::vector<Entry> entries;
};

std::vector<Example> Examples() {
  return {
      {"table1",
       "  // The IHA paper's Table 1: checkpoints after SFT, 16 samples an item at T = 0.6.\n"
       "  // Model names are folders below the workers' --models-root.\n",
       R"(["iha", "global", "global-local", "talking-heads", "diff"])",
       {{"P@1 is the mean over the 16 samples; Maj@16 the vote over them.",
         R"({"spec": "gsm8k?fewshot=5", "samples": 16, "temperature": 0.6,
     "metrics": ["gsm8k.flexible_extract", "maj@16?metric=gsm8k.flexible_extract"]})"},
        {"", R"({"spec": "math500", "samples": 16, "temperature": 0.6,
     "metrics": ["math.minerva", "maj@16?metric=math.minerva"]})"},
        {"", R"({"spec": "mbpp", "samples": 16, "temperature": 0.6, "metrics": ["mbpp.pass@1", "mbpp.pass@10"]})"}}},
      {"table2",
       "  // The IHA paper's Table 2: pre-trained checkpoints. EM is greedy; Maj@5 is a second job at T = 0.6.\n"
       "  // Shots: GSM8K 5, MATH-500 its 4 exemplars, MBPP its 3, HumanEval 0.\n"
       "  // Model names are folders below the workers' --models-root.\n",
       R"(["iha", "global", "global-local", "talking-heads", "diff"])",
       {{"", R"({"spec": "gsm8k?fewshot=5", "temperature": 0, "metrics": ["gsm8k.flexible_extract"]})"},
        {"", R"({"spec": "gsm8k?fewshot=5", "samples": 5, "temperature": 0.6,
     "metrics": ["maj@5?metric=gsm8k.flexible_extract"]})"},
        {"", R"({"spec": "math500", "temperature": 0, "metrics": ["math.minerva"]})"},
        {"", R"({"spec": "mbpp", "temperature": 0, "metrics": ["mbpp.pass@1"]})"},
        {"", R"({"spec": "humaneval", "temperature": 0, "max_new_tokens": 1024, "metrics": ["humaneval.pass@1"]})"}}},
      {"ruler",
       "  // The IHA paper's Figure 2: RULER after 64k fine-tuning; multi-key retrieval at 4k, 8k, 16k and the mean.\n",
       R"(["iha", "global", "global-local", "diff"])",
       {{"", R"({"spec": "ruler@4096,8192,16384", "temperature": 0})"}}},
  };
}

// "ruler:TASK@4096,8192" to "ruler".
std::string FamilyOf(const std::string& benchmark) { return benchmark.substr(0, benchmark.find_first_of(":@")); }

// The family of an entry's benchmark if this build lacks it, else "".
absl::StatusOr<std::string> MissingFamily(const Entry& entry) {
  IHA_ASSIGN_OR_RETURN(
      const SweepSpec spec,
      ParseSweep(fmt::format(R"({{"version": 1, "models": ["m"], "benchmarks": [{}]}})", entry.json), "example"));
  const std::string family = FamilyOf(spec.entries[0].benchmark.name);
  for (const benchmarks::BenchmarkInfo& info : benchmarks::ListBenchmarks()) {
    if (FamilyOf(info.name) == family) return std::string();
  }
  return family;
}

// Each line behind "// ", at the indentation of the list.
std::string CommentedOut(const std::string& json) {
  std::string out;
  for (size_t begin = 0; begin <= json.size();) {
    const size_t end = std::min(json.find('\n', begin), json.size());
    out += "    // " + json.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return out;
}

// The list as this build takes it: entries of benchmarks that it lacks are comments.
std::string Entries(const Example& example, const std::vector<bool>& live) {
  const size_t last = static_cast<size_t>(std::find(live.rbegin(), live.rend(), true) - live.rbegin());
  std::string out;
  for (size_t i = 0; i < live.size(); i++) {
    const Entry& entry = example.entries[i];
    if (*entry.comment != '\0') out += fmt::format("    // {}\n", entry.comment);
    const bool comma = i + 1 + last < live.size();
    out += live[i] ? fmt::format("    {}{}\n", entry.json, comma ? "," : "") : CommentedOut(entry.json);
  }
  return out;
}

absl::StatusOr<std::string> Print(const Example& example) {
  std::vector<bool> live;
  std::vector<std::string> missing;
  for (const Entry& entry : example.entries) {
    IHA_ASSIGN_OR_RETURN(const std::string family, MissingFamily(entry));
    live.push_back(family.empty());
    if (!family.empty() && std::find(missing.begin(), missing.end(), family) == missing.end()) {
      missing.push_back(family);
    }
  }
  std::string note;
  if (!missing.empty()) {
    const bool nothing_left = std::find(live.begin(), live.end(), true) == live.end();
    if (nothing_left) live.assign(live.size(), true);
    note = fmt::format("// Not in this build: {}. {}\n", fmt::join(missing, ", "),
                       nothing_left ? "run and submit refuse this file; another build may take it."
                                    : "Their entries are comments below; the file runs without them.");
  }
  return fmt::format(
      "{}{{\n{}  \"version\": 1,\n  \"models\": {},\n  \"benchmarks\": [\n{}  ],\n"
      "  \"numerics\": {{\"backend\": \"cpu-exact\"}}\n}}\n",
      note, example.intro, example.models, Entries(example, live));
}

}  // namespace

absl::StatusOr<std::string> ExampleSweep(const std::string& name) {
  std::vector<std::string> known;
  for (const Example& example : Examples()) {
    if (name == example.name) return Print(example);
    known.emplace_back(example.name);
  }
  return UnknownName("sweep example", name, known);
}

}  // namespace iha::cli
