#include "worker/engine/kv_budget.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace iha::engine {

int64_t DefaultKvBytes() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  std::string unit;
  for (int64_t kib = 0; meminfo >> key >> kib >> unit;) {
    if (key == "MemAvailable:") return std::clamp<int64_t>(kib * 1024 / 4, int64_t{256} << 20, int64_t{8} << 30);
  }
  return int64_t{1} << 30;
}

}  // namespace iha::engine
