#include "benchmarks/ruler/spec.h"

#include <algorithm>
#include <charconv>

#include "benchmarks/ruler/tasks.h"
#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"

namespace iha::benchmarks::ruler {
namespace {

constexpr std::string_view kFamily = "ruler";

std::vector<std::string> SplitList(std::string_view list) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    parts.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

absl::StatusOr<std::vector<const Task*>> TasksOf(const std::string& name, std::string_view list) {
  std::vector<const Task*> tasks;
  for (const std::string& part : SplitList(list)) {
    const absl::StatusOr<const Task*> task = RequireTask(part);
    if (!task.ok()) return Annotate(task.status(), TerminalSafe(name, 200));
    if (std::find(tasks.begin(), tasks.end(), *task) != tasks.end()) {
      return InvalidArgument("{}: task {} is there twice", TerminalSafe(name, 200), part);
    }
    tasks.push_back(*task);
  }
  // In the order of the table, so that equal requests are equal sweeps.
  std::sort(tasks.begin(), tasks.end());
  return tasks;
}

absl::StatusOr<std::vector<int64_t>> LengthsOf(const std::string& name, std::string_view list) {
  std::vector<int64_t> lengths;
  for (const std::string& part : SplitList(list)) {
    int64_t length = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), length);
    if (error != std::errc() || end != part.data() + part.size() || length < 1 || length > kMaxLength) {
      return InvalidArgument("{}: length '{}'; expected tokens from 1 to {}, as in ruler:vt@4096,8192",
                             TerminalSafe(name, 200), TerminalSafe(part, 40), kMaxLength);
    }
    if (std::find(lengths.begin(), lengths.end(), length) != lengths.end()) {
      return InvalidArgument("{}: length {} is there twice", TerminalSafe(name, 200), length);
    }
    lengths.push_back(length);
  }
  std::sort(lengths.begin(), lengths.end());
  return lengths;
}

}  // namespace

bool IsRulerName(std::string_view name) {
  if (!name.starts_with(kFamily)) return false;
  const std::string_view rest = name.substr(kFamily.size());
  return rest.empty() || rest.front() == ':' || rest.front() == '@';
}

absl::StatusOr<std::vector<std::string>> CellNames(const std::string& name) {
  const std::string_view view = name;
  const size_t at = view.find('@');
  const std::string_view head = view.substr(0, at);
  std::vector<const Task*> tasks;
  if (head == kFamily) {
    for (const Task& task : Tasks()) tasks.push_back(&task);
  } else {
    IHA_ASSIGN_OR_RETURN(tasks, TasksOf(name, head.substr(kFamily.size() + 1)));
  }
  std::vector<int64_t> lengths = {kDefaultLength};
  if (at != std::string_view::npos) {
    IHA_ASSIGN_OR_RETURN(lengths, LengthsOf(name, view.substr(at + 1)));
  }
  std::vector<std::string> names;
  for (const int64_t length : lengths) {
    for (const Task* task : tasks) names.push_back(fmt::format("{}:{}@{}", kFamily, task->name, length));
  }
  return names;
}

}  // namespace iha::benchmarks::ruler
