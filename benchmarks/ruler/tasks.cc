#include "benchmarks/ruler/tasks.h"

#include <array>
#include <string>
#include <vector>

#include "common/nearest.h"

namespace iha::benchmarks::ruler {
namespace {

constexpr Task Niah(std::string_view name, const NiahParameters& parameters) {
  return {.name = name, .family = Family::kNiah, .tokens_to_generate = 128, .match = Match::kAll, .niah = parameters};
}

constexpr std::array<Task, 13> kTasks = {{
    Niah("niah_single_1", {.haystack = HaystackKind::kNoise}),
    Niah("niah_single_2", {}),
    Niah("niah_single_3", {.uuid_values = true}),
    Niah("niah_multikey_1", {.keys = 4}),
    Niah("niah_multikey_2", {.haystack = HaystackKind::kNeedle}),
    Niah("niah_multikey_3", {.haystack = HaystackKind::kNeedle, .uuid_keys = true, .uuid_values = true}),
    Niah("niah_multivalue", {.values = 4}),
    Niah("niah_multiquery", {.keys = 4, .queries = 4}),
    {.name = "vt", .family = Family::kVt, .tokens_to_generate = 30},
    {.name = "cwe", .family = Family::kCwe, .tokens_to_generate = 120},
    {.name = "fwe", .family = Family::kFwe, .tokens_to_generate = 50},
    {.name = "qa_1", .family = Family::kQa, .tokens_to_generate = 32, .match = Match::kPart},
    {.name = "qa_2", .family = Family::kQa, .tokens_to_generate = 32, .match = Match::kPart, .qa = QaSource::kHotpot},
}};

}  // namespace

std::span<const Task> Tasks() { return kTasks; }

const Task* FindTask(std::string_view name) {
  for (const Task& task : kTasks) {
    if (task.name == name) return &task;
  }
  return nullptr;
}

absl::StatusOr<const Task*> RequireTask(const std::string& name) {
  if (const Task* task = FindTask(name)) return task;
  std::vector<std::string> names;
  for (const Task& task : kTasks) names.emplace_back(task.name);
  return UnknownName("RULER task", name, names);
}

}  // namespace iha::benchmarks::ruler
