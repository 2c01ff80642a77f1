// What opening a checkpoint for running costs: wall time, and resident memory beside the size that its weights have at
// 16 bits each. Run as `bench_load DIR [THREADS]`: one JSON line. Not a google-benchmark: memory must be read in a
// process that has done nothing else, so repetitions are runs.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>

#include "common/clock.h"
#include "common/text.h"
#include "model/checkpoint/checkpoint.h"
#include "model/open_model.h"

namespace iha {
namespace {

// kB of a line of /proc/self/status.
long StatusKb(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key + ":")) return std::strtol(line.c_str() + key.size() + 1, nullptr, 10);
  }
  return -1;
}

int Run(const std::string& folder, int threads) {
  RealClock clock;
  const long before = StatusKb("VmRSS");
  const absl::Duration begin = clock.Elapsed();
  const auto model = model::OpenModel(folder, {.threads = threads, .numerics = {}});
  const double cpu = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  const double seconds = absl::ToDoubleSeconds(clock.Elapsed() - begin);
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", TerminalSafe(model.status().ToString()).c_str());
    return 1;
  }
  const long after = StatusKb("VmRSS"), peak = StatusKb("VmHWM");
  const auto checkpoint = checkpoint::Checkpoint::Open(folder);
  const double half_kb = static_cast<double>(checkpoint->parameters()) * 2 / 1024;
  std::printf(
      "{\"threads\":%d,\"seconds\":%.3f,\"rss_before_mib\":%.1f,\"rss_mib\":%.1f,\"peak_mib\":%.1f,\"bf16_mib\":%.1f,"
      "\"rss_over_bf16\":%.3f,\"cpu_seconds\":%.3f}\n",
      threads, seconds, static_cast<double>(before) / 1024, static_cast<double>(after) / 1024,
      static_cast<double>(peak) / 1024, half_kb / 1024, static_cast<double>(after) / half_kb, cpu);
  return 0;
}

}  // namespace
}  // namespace iha

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "bench_load DIR [THREADS]\n");
    return 2;
  }
  return iha::Run(argv[1], argc > 2 ? std::atoi(argv[2]) : 2);
}
