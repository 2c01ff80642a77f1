#include <fmt/format.h>

#include <string>
#include <vector>

#include "cli/sweep_file.h"
#include "common/nearest.h"

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
       "  // The IHA paper's Figure 2: RULER after 64k fine-tuning; multi-key retrieval at 4k, 8k, 16k and the mean.\n"
       "  // Every task at every length is an entry of its own; NVIDIA's lengths go on to 32768, 65536 and 131072.\n"
       "  // Model names are folders below the workers' --models-root.\n",
       R"(["iha", "global", "global-local", "diff"])",
       {{"Greedy, 500 rows a task; each task's own number of new tokens.",
         R"({"spec": "ruler@4096,8192,16384", "temperature": 0})"}}},
  };
}

std::string Entries(const Example& example) {
  std::string out;
  for (size_t i = 0; i < example.entries.size(); i++) {
    const Entry& entry = example.entries[i];
    if (*entry.comment != '\0') out += fmt::format("    // {}\n", entry.comment);
    out += fmt::format("    {}{}\n", entry.json, i + 1 < example.entries.size() ? "," : "");
  }
  return out;
}

std::string Print(const Example& example) {
  return fmt::format(
      "{{\n{}  \"version\": 1,\n  \"models\": {},\n  \"benchmarks\": [\n{}  ],\n"
      "  \"numerics\": {{\"backend\": \"cpu-exact\"}}\n}}\n",
      example.intro, example.models, Entries(example));
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
