// Samples a second of the code sandbox, beside the same fork server without namespaces, mounts and filter.
//
// bench_sandbox [SECONDS]: each row runs that long (default 5). A sample is a trivial program and its test, official
// run only; `judged` adds the scan that a pass costs. The bare server runs nothing but this program's own sample.
#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "common/errors.h"
#include "common/status_macros.h"
#include "worker/sandbox/judge.h"
#include "worker/sandbox/scripts.h"
#include "worker/sandbox/slot.h"

namespace iha::sandbox {
namespace {

constexpr const char* kProgram = "def f(x):\n    return 2 * x\n";
constexpr const char* kTests = "assert f(1) == 2";

absl::StatusOr<SlotSetup> BareSetup() {
  IHA_ASSIGN_OR_RETURN(SlotSetup setup, SetupOf(60));
  std::string script = kServerScript;
  script.resize(script.rfind("serve()"));
  script += "NEW_NAMESPACES = 0\ndef private_folders(): pass\ndef drop_privileges(): pass\nserve()\n";
  setup.child.argv = {"/usr/bin/python3", "-s", "-S", "-P", "-B", "-c", script};
  return setup;
}

// Mean milliseconds of a sample in one slot.
absl::StatusOr<double> PerSample(const SlotSetup& setup, absl::Duration time) {
  IHA_ASSIGN_OR_RETURN(const auto slot, Slot::Start(setup));
  const nlohmann::json job = {{"op", "run"}, {"program", std::string(kProgram) + kTests}, {"cpu", 10}, {"wall", 25}};
  int samples = 0;
  const absl::Time begin = absl::Now();
  while (absl::Now() - begin < time) {
    IHA_ASSIGN_OR_RETURN(const nlohmann::json answer, slot->Ask(job, absl::Seconds(60)));
    if (answer.value("end", "") != "completed") return Internal("sample ended with {}", answer.dump());
    samples++;
  }
  return absl::ToDoubleMilliseconds(absl::Now() - begin) / samples;
}

absl::StatusOr<double> JudgedPerSecond(int slots, absl::Duration time) {
  IHA_ASSIGN_OR_RETURN(auto sandbox, Sandbox::Open(slots));
  SandboxJudge judge(std::move(sandbox));
  const benchmarks::CodeTask task = {
      .id = "twice", .setup = "", .tests = kTests, .reference = kProgram, .entries = {"f"}};
  std::atomic<int> samples = 0;
  std::vector<std::thread> threads;
  const absl::Time begin = absl::Now();
  for (int t = 0; t < slots; t++) {
    threads.emplace_back([&] {
      while (absl::Now() - begin < time) {
        const auto verdict = judge.Judge(task, kProgram, benchmarks::CodeRule::kDefault);
        if (verdict.ok() && verdict->passed()) samples++;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return samples / absl::ToDoubleSeconds(absl::Now() - begin);
}

absl::Status Run(absl::Duration time) {
  IHA_ASSIGN_OR_RETURN(const SlotSetup bare, BareSetup());
  IHA_ASSIGN_OR_RETURN(const SlotSetup full, SetupOf(61));
  // In turns, so that a busy moment of the machine is not one row's alone.
  for (int turn = 0; turn < 3; turn++) {
    IHA_ASSIGN_OR_RETURN(const double without, PerSample(bare, time));
    IHA_ASSIGN_OR_RETURN(const double with, PerSample(full, time));
    fmt::print("one slot: {:.2f} ms a sample without namespaces, {:.2f} ms with: {:.2f} ms more\n", without, with,
               with - without);
  }
  for (const int slots : {1, 2}) {
    IHA_ASSIGN_OR_RETURN(const double rate, JudgedPerSecond(slots, time));
    fmt::print("judged, {} slot{}: {:.1f} samples/s\n", slots, slots == 1 ? "" : "s", rate);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace iha::sandbox

int main(int argc, char** argv) {
  const int seconds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  const absl::Status status = iha::sandbox::Run(absl::Seconds(seconds));
  if (!status.ok()) fmt::print(stderr, "bench_sandbox: {}\n", std::string(status.message()));
  return status.ok() ? 0 : 1;
}
