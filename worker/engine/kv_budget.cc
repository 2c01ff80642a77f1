#include "worker/engine/kv_budget.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace iha::engine {
namespace {

// The files of one cgroup version, below its mount point.
struct CgroupFiles {
  const char* mount;
  const char* limit;
  const char* used;
  const char* file_pages;  // key in memory.stat
};
constexpr CgroupFiles kVersion1 = {"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                   "total_inactive_file"};
constexpr CgroupFiles kVersion2 = {"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};

// The number after `key` in a file of "key number" lines; with an empty key, the number that is the whole file ("max",
// which is no limit, is none).
std::optional<int64_t> NumberOf(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string word; !key.empty() && word != key;) {
    if (!(file >> word)) return std::nullopt;
  }
  int64_t number = 0;
  if (!(file >> number)) return std::nullopt;
  return number;
}

// Of `folder`'s limit alone; nullopt without one.
std::optional<int64_t> LeftIn(const std::string& folder, const CgroupFiles& files) {
  const auto limit = NumberOf(folder + "/" + files.limit, "");
  const auto used = NumberOf(folder + "/" + files.used, "");
  if (!limit.has_value() || !used.has_value()) return std::nullopt;
  return *limit - *used + NumberOf(folder + "/memory.stat", files.file_pages).value_or(0);
}

// The least that is left in the cgroup at `path` and those above it. In a container the path may be the host's, which
// is not mounted there: its own cgroup is then the mount point.
std::optional<int64_t> LeftAbove(const std::string& root, const CgroupFiles& files, std::string path) {
  std::optional<int64_t> least;
  while (true) {
    const auto left = LeftIn(root + files.mount + path, files);
    if (left.has_value()) least = std::min(*left, least.value_or(*left));
    if (path.empty()) return least;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

std::optional<int64_t> LeftInCgroups(const std::string& root) {
  std::ifstream groups(root + "proc/self/cgroup");
  std::optional<int64_t> least;
  // ID:CONTROLLERS:PATH; version 2 is "0::PATH".
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool version2 = controllers == ",,";
    if (!version2 && controllers.find(",memory,") == std::string::npos) continue;
    const auto left = LeftAbove(root, version2 ? kVersion2 : kVersion1, line.substr(second + 1));
    if (left.has_value()) least = std::min(*left, least.value_or(*left));
  }
  return least;
}

constexpr int64_t kLeastBytes = int64_t{256} << 20;

}  // namespace

int64_t DeviceKvBytes(int64_t free, int64_t sharers) { return std::max(free / 4 / sharers, kLeastBytes); }

int64_t DefaultKvBytes(const std::string& root, int64_t sharers) {
  const auto kib = NumberOf(root + "proc/meminfo", "MemAvailable:");
  if (!kib.has_value()) return int64_t{1} << 30;
  const int64_t machine = *kib * 1024;
  const int64_t free = std::min(machine, LeftInCgroups(root).value_or(machine));
  return std::clamp<int64_t>(free / 4 / sharers, kLeastBytes, int64_t{8} << 30);
}

}  // namespace iha::engine
