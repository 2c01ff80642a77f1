// The race detector against happens-before computed thread by thread with vector clocks, over random programs.
#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "kernels/simt/device.h"
#include "kernels/simt/ptx.h"
#include "tests/kernels/kernel_test_util.h"

namespace iha::kernels {
namespace {

constexpr uint32_t kWarps = 3, kThreads = kWarps * 32, kCells = 2;

// One thing that some threads do; all threads go through the steps in order, so no order of them deadlocks.
struct Step {
  enum Kind { kRead, kWrite, kAtomic, kSyncWarp, kSyncThreads, kPair, kArrive } kind = kRead;
  uint32_t thread = 0;  // accesses
  uint32_t cell = 0;
  uint32_t warp = 0;   // kSyncWarp; kPair, kArrive: the first warp, which arrives
  uint32_t other = 0;  // kPair, kArrive: the second
  uint32_t mask = 0;   // kSyncWarp
};

std::vector<Step> RandomProgram(std::mt19937& bits) {
  constexpr std::array<uint32_t, 4> kLanes{0, 1, 2, 31};
  std::vector<Step> steps(4 + bits() % 10);
  for (Step& s : steps) {
    s.kind = static_cast<Step::Kind>(bits() % 3);
    s.thread = bits() % kWarps * 32 + kLanes[bits() % 4];
    s.cell = bits() % kCells;
    if (bits() % 2 == 0) continue;
    s.kind = static_cast<Step::Kind>(Step::kSyncWarp + bits() % 4);
    s.warp = bits() % kWarps;
    s.other = (s.warp + 1 + bits() % 2) % kWarps;
    s.mask = bits() % 3 == 0 ? ptx::kAllLanes : (bits() & 0x80000007u);
    if (s.mask == 0) s.mask = 1;
  }
  return steps;
}

// Whether two accesses of the program conflict and neither happens before the other.
bool HasRace(const std::vector<Step>& steps) {
  std::vector<std::array<uint32_t, kThreads>> clocks(kThreads);
  for (uint32_t t = 0; t < kThreads; ++t) clocks[t] = {}, clocks[t][t] = 1;
  struct Access {
    uint32_t thread, epoch, cell;
    Step::Kind kind;
  };
  std::vector<Access> past;
  const auto meet = [&](const std::vector<uint32_t>& tell, const std::vector<uint32_t>& hear) {
    std::array<uint32_t, kThreads> all = {};
    for (const uint32_t t : tell) {
      for (uint32_t u = 0; u < kThreads; ++u) all[u] = std::max(all[u], clocks[t][u]);
    }
    for (const uint32_t t : hear) {
      for (uint32_t u = 0; u < kThreads; ++u) clocks[t][u] = std::max(clocks[t][u], all[u]);
    }
    for (const uint32_t t : tell) ++clocks[t][t];
  };
  const auto lanes_of = [](uint32_t warp, uint32_t mask) {
    std::vector<uint32_t> threads;
    for (uint32_t lane = 0; lane < 32; ++lane) {
      if ((mask >> lane & 1) != 0) threads.push_back(warp * 32 + lane);
    }
    return threads;
  };
  for (const Step& s : steps) {
    std::vector<uint32_t> first = lanes_of(s.warp, s.kind == Step::kSyncWarp ? s.mask : ptx::kAllLanes);
    const std::vector<uint32_t> second = lanes_of(s.other, ptx::kAllLanes);
    if (s.kind == Step::kSyncWarp) {
      meet(first, first);
    } else if (s.kind == Step::kSyncThreads) {
      std::vector<uint32_t> all(kThreads);
      for (uint32_t t = 0; t < kThreads; ++t) all[t] = t;
      meet(all, all);
    } else if (s.kind == Step::kPair || s.kind == Step::kArrive) {
      first.insert(first.end(), second.begin(), second.end());
      meet(first, s.kind == Step::kPair ? first : second);
    } else {
      for (const Access& a : past) {
        const bool conflict = a.cell == s.cell && a.thread != s.thread &&
                              !(a.kind == Step::kRead && s.kind == Step::kRead) &&
                              !(a.kind == Step::kAtomic && s.kind == Step::kAtomic);
        if (conflict && clocks[s.thread][a.thread] < a.epoch) return true;
      }
      past.push_back({s.thread, clocks[s.thread][s.thread], s.cell, s.kind});
    }
  }
  return false;
}

simt::Report Launched(simt::Device& device, const std::vector<Step>& steps) {
  return device.Launch({"program", {1, 1, 1}, {kThreads, 1, 1}, kCells * 4}, [&] {
    const uint32_t thread = ptx::ThreadX(), lane = ptx::Lane(), warp = ptx::WarpIndex();
    const auto cells = ptx::DynamicShared<uint32_t>();
    if (thread < kCells) ptx::Store(cells + thread, 0u);
    ptx::SyncThreads();
    for (uint32_t i = 0; i < steps.size(); ++i) {
      const Step& s = steps[i];
      const bool takes_part = warp == s.warp || warp == s.other;
      switch (s.kind) {
        case Step::kRead:
          if (thread == s.thread) ptx::Load(cells + s.cell);
          break;
        case Step::kWrite:
          if (thread == s.thread) ptx::Store(cells + s.cell, i);
          break;
        case Step::kAtomic:
          if (thread == s.thread) ptx::AtomicAdd(cells + s.cell, 1u);
          break;
        case Step::kSyncWarp:
          if (warp == s.warp && (s.mask >> lane & 1) != 0) ptx::SyncWarp(s.mask);
          break;
        case Step::kSyncThreads:
          ptx::SyncThreads();
          break;
        case Step::kPair:
          if (takes_part) ptx::BarSync(1 + i, 64);
          break;
        case Step::kArrive:
          if (warp == s.warp) {
            ptx::BarArrive(1 + i, 64);
          } else if (warp == s.other) {
            ptx::BarSync(1 + i, 64);
          }
          break;
      }
    }
  });
}

TEST(SimtRaceOracle, ReportsExactlyTheProgramsWithARace) {
  std::mt19937 bits(2026);
  simt::Device device;
  int races = 0;
#if defined(__SANITIZE_THREAD__)
  const int programs = 100;  // it takes a hundred times as long to make fibers and to switch them
#else
  const int programs = 1500;
#endif
  for (int i = 0; i < programs; ++i) {
    const std::vector<Step> steps = RandomProgram(bits);
    const bool race = HasRace(steps);
    races += race ? 1 : 0;
    for (const uint64_t seed : {1, 2}) {
      device.set_options({.seed = seed});
      const simt::Report report = Launched(device, steps);
      ASSERT_EQ(report.error, race ? simt::ErrorKind::kRace : simt::ErrorKind::kNone)
          << "program " << i << " seed " << seed << ": " << report.message;
    }
  }
  // Both answers are common, or the test says little.
  EXPECT_GT(races, programs / 5);
  EXPECT_LT(races, programs * 4 / 5);
}

}  // namespace
}  // namespace iha::kernels
