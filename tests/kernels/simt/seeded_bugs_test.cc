// Every seeded bug is shown in every order of warps and both ways of cp.async; the clean kernels raise nothing.
#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/kernels/gpu/gpu_test_util.h"
#include "tests/kernels/simt/seeded_kernels.cuh"

namespace iha::kernels {
namespace {

// What a run showed: the error of its report, or "wrong result", "bank conflicts", or "" for nothing.
struct Shown {
  simt::ErrorKind error = simt::ErrorKind::kNone;
  std::string what;
};

Shown Judge(const simt::Report& report, bool equal, bool conflicts = false) {
  if (!report.ok()) return {report.error, report.message};
  if (!equal) return {simt::ErrorKind::kNone, "wrong result"};
  return {simt::ErrorKind::kNone, conflicts ? "bank conflicts" : ""};
}

std::vector<uint16_t> SmallIntegers(size_t n, uint32_t seed) {
  std::vector<uint16_t> values;
  for (const float x : RandomFloats(n, seed, 8)) values.push_back(RoundToBF16(std::floor(x)));
  return values;
}

// Small integers, so that every order of summation is exact.
Shown RunGemm(simt::Device& device, int bug) {
  SeededArgs p{.m = 41, .n = 40, .k = 88, .bug = bug};
  const auto a = SmallIntegers(static_cast<size_t>(p.m * p.k), 1), b = SmallIntegers(static_cast<size_t>(p.k * p.n), 2);
  simt::Buffer<uint16_t> da(device, a, "a"), db(device, b, "b");
  simt::Buffer<float> y(device, static_cast<size_t>(p.m * p.n), "y");
  p.a = da.data();
  p.b = db.data();
  p.y = y.data();
  const size_t shared = bug == kSharedTooSmall ? 4 * kSeededStage - 16 : 4 * kSeededStage;
  LaunchKernel("gemm", SeededGemm, {2, 2, 1, 128, shared}, &device, p);
  bool equal = true;
  for (int m = 0; m < p.m; ++m) {
    for (int n = 0; n < p.n; ++n) {
      float want = 0;
      for (int k = 0; k < p.k; ++k) {
        want += WidenBF16(a[static_cast<size_t>(m * p.k + k)]) * WidenBF16(b[static_cast<size_t>(k * p.n + n)]);
      }
      equal &= y.data()[m * p.n + n] == want;
    }
  }
  return Judge(device.report(), equal, device.report().counters.matrix_bank_conflicts != 0);
}

Shown RunSoftmax(simt::Device& device, int bug) {
  SeededArgs p{.n = 90, .k = 50, .bug = bug};
  const size_t n = static_cast<size_t>(p.n), rows = 80;
  const std::vector<float> x = RandomFloats(rows * n, 3, 4);
  simt::Buffer<float> dx(device, x, "x"), y(device, rows * n, "y");
  p.x = dx.data();
  p.y = y.data();
  LaunchKernel("softmax", SeededSoftmax, {rows, 1, 1, 96, 8 * sizeof(float)}, &device, p);
  bool equal = true;
  for (size_t row = 0; row < rows; ++row) {
    const size_t first = row + 1 < 50 ? 0 : row - 49;
    double sum = 0;
    for (size_t j = first; j <= row; ++j) sum += std::exp2(static_cast<double>(x[row * n + j]));
    for (size_t j = 0; j < n; ++j) {
      const double want = j >= first && j <= row ? std::exp2(static_cast<double>(x[row * n + j])) / sum : 0.0;
      // x - max rounds to 2^-24 of at most 8, exp2 to 1 ulp, 7 additions and a division: below 20 ulp; NaN is unequal.
      equal &= std::fabs(y.data()[row * n + j] - want) <= 20 * 0x1p-24 * want;
    }
  }
  return Judge(device.report(), equal);
}

Shown RunTranspose(simt::Device& device, int bug) {
  const std::vector<float> x = RandomFloats(4 * 1024, 4);
  simt::Buffer<float> dx(device, x, "x"), y(device, x.size(), "y");
  LaunchKernel("transpose", SeededTranspose, {1, 1, 1, 64, 2 * 32 * 33 * sizeof(float)}, &device,
               SeededArgs{.x = dx.data(), .y = y.data(), .bug = bug});
  bool equal = true;
  for (size_t i = 0; i < x.size(); ++i) equal &= y.data()[i] == x[i / 1024 * 1024 + i % 32 * 32 + i / 32 % 32];
  return Judge(device.report(), equal);
}

Shown RunPipe(simt::Device& device, int bug) {
  const std::vector<float> x = RandomFloats(7 * 32, 5);
  simt::Buffer<float> dx(device, x, "x"), y(device, x.size(), "y");
  LaunchKernel("pipe", SeededPipe, {1, 1, 1, 64, 2 * 32 * sizeof(float)}, &device,
               SeededArgs{.x = dx.data(), .y = y.data(), .n = 7, .bug = bug});
  bool equal = true;
  for (size_t i = 0; i < x.size(); ++i) equal &= y.data()[i] == 2 * x[i / 32 * 32 + 31 - i % 32];
  return Judge(device.report(), equal);
}

Shown RunHistogram(simt::Device& device, int bug) {
  std::vector<float> x;
  for (const float v : RandomFloats(1000, 6, 500)) x.push_back(std::floor(v + 500));
  simt::Buffer<float> dx(device, x, "x"), y(device, 4 * 64, "y");
  simt::Buffer<uint32_t> counts(device, 64, "counts");
  device.Find(counts.data())->MarkWritten();
  std::vector<uint32_t> want(64, 0);
  for (size_t i = 0; i < 64; ++i) counts.data()[i] = 0;
  for (const float v : x) ++want[static_cast<uint32_t>(v) % 64];
  LaunchKernel("histogram", SeededHistogram, {4, 1, 1, 96, 64 * sizeof(uint32_t)}, &device,
               SeededArgs{.x = dx.data(), .y = y.data(), .counts = counts.data(), .n = 1000, .k = 252, .bug = bug});
  return Judge(device.report(), counts.ToHost() == want);
}

using Seeded = Shown (*)(simt::Device&, int);
struct Case {
  int bug;
  const char* name;
  Seeded run;
  std::vector<simt::ErrorKind> errors;  // one of them; empty: `what`
  const char* what = "";
};

std::vector<Case> Cases() {
  using K = simt::ErrorKind;
  return {
      {kNoBarrierAfterWait, "no barrier after wait", RunGemm, {K::kRace, K::kAsyncCopy, K::kUninitialised}},
      {kNoBarrierBeforeRefill, "no barrier before refill", RunGemm, {K::kRace}},
      {kNoWait, "no wait", RunGemm, {K::kAsyncCopy}},
      {kWaitLeavesLastGroup, "wait leaves the last group", RunGemm, {K::kAsyncCopy}},
      {kWrongStage, "wrong stage", RunGemm, {K::kAsyncCopy, K::kRace, K::kUninitialised}},
      {kNoCommit, "no commit", RunGemm, {K::kAsyncCopy}},
      {kSwizzleOnWriteOnly, "swizzle on write only", RunGemm, {}, "wrong result"},
      {kNoSwizzle, "no swizzle", RunGemm, {}, "bank conflicts"},
      {kTailReadsOn, "tail reads on", RunGemm, {K::kOutOfBounds}},
      {kRowsStoredPastTheEnd, "rows stored past the end", RunGemm, {K::kOutOfBounds}},
      {kTileNotTransposed, "tile not transposed", RunGemm, {}, "wrong result"},
      {kFragmentRegistersSwapped, "fragment registers swapped", RunGemm, {}, "wrong result"},
      {kWrongWarpRow, "wrong warp row", RunGemm, {}, "wrong result"},
      {kSharedTooSmall, "shared memory too small", RunGemm, {K::kOutOfBounds}},
      {kRowsNotZeroFilled, "rows not zero-filled", RunGemm, {K::kUninitialised}},
      {kRefillOneStageEarly, "refill of the stage in use", RunGemm, {K::kAsyncCopy}},
      {kNoBarrierBeforePartials, "no barrier before partials", RunSoftmax, {K::kRace, K::kUninitialised}},
      {kNoBarrierBetweenReductions, "no barrier between reductions", RunSoftmax, {K::kRace}},
      {kPartialsOfAbsentWarps, "partials of absent warps", RunSoftmax, {K::kUninitialised}},
      {kShuffleDownForXor, "shuffle down for xor", RunSoftmax, {}, "wrong result"},
      {kShuffleMaskLacksLane, "shuffle mask lacks a lane", RunSoftmax, {K::kDiverged}},
      {kShuffleAfterEarlyReturn, "shuffle after early return", RunSoftmax, {K::kDiverged}},
      {kMaskOffByOne, "causal mask off by one", RunSoftmax, {}, "wrong result"},
      {kBarrierInBranch, "barrier in a branch", RunSoftmax, {K::kBarrier}},
      {kShuffleStepMissing, "shuffle step missing", RunSoftmax, {}, "wrong result"},
      {kWindowTooLong, "window one longer", RunSoftmax, {}, "wrong result"},
      {kNoSyncWarp, "no syncwarp", RunTranspose, {K::kRace, K::kUninitialised}},
      {kSyncHalfWarp, "syncwarp of half the warp", RunTranspose, {K::kRace, K::kUninitialised}},
      {kRowTooNarrow, "row too narrow", RunTranspose, {K::kRace}},
      {kReadsOwnColumn, "reads its own column", RunTranspose, {}, "wrong result"},
      {kNoSyncBeforeOverwrite, "no syncwarp before overwriting", RunTranspose, {K::kRace}},
      {kWrongBarrier, "wrong barrier", RunPipe, {K::kDeadlock, K::kRace, K::kUninitialised, K::kBarrier}},
      {kWrongCount, "wrong count", RunPipe, {K::kRace, K::kUninitialised, K::kBarrier}},
      {kNoEmptyWait, "no wait for an empty buffer", RunPipe, {K::kRace, K::kDeadlock}},
      {kNoArrive, "no arrive", RunPipe, {K::kDeadlock}},
      {kWrongPhase, "wrong phase", RunPipe, {K::kRace, K::kUninitialised}},
      {kPlainSharedAdd, "plain add in shared memory", RunHistogram, {K::kRace}},
      {kPlainGlobalAdd, "plain add in global memory", RunHistogram, {K::kBlockConflict}},
      {kNotZeroed, "counters not zeroed", RunHistogram, {K::kUninitialised}},
      {kNoBarrierAfterZeroing, "no barrier after zeroing", RunHistogram, {K::kRace, K::kUninitialised}},
      {kBlocksOverlap, "blocks write the same rows", RunHistogram, {K::kBlockConflict}},
      {kMisalignedLoad, "misaligned load", RunHistogram, {K::kMisaligned}},
      {kLoadPastTheEnd, "load past the end", RunHistogram, {K::kOutOfBounds}},
      {kNoBarrierBeforeFlush, "no barrier before the flush", RunHistogram, {K::kRace}},
  };
}

TEST(SimtSeededBugs, EveryBugIsShown) {
  const std::vector<Case> cases = Cases();
  ASSERT_EQ(cases.size(), static_cast<size_t>(kBugs) - 1);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    ForEachSchedule([&](simt::Device& device) {
      const Shown shown = c.run(device, c.bug);
      if (c.errors.empty()) {
        EXPECT_EQ(shown.what, c.what);
      } else {
        EXPECT_THAT(c.errors, testing::Contains(shown.error)) << simt::ToString(shown.error) << ": " << shown.what;
      }
    });
  }
}

TEST(SimtSeededBugs, CleanKernelsRaiseNothing) {
  for (const Seeded run : {RunGemm, RunSoftmax, RunTranspose, RunPipe, RunHistogram}) {
    ForEachSchedule([&](simt::Device& device) { EXPECT_EQ(run(device, kNoBug).what, ""); });
  }
}

}  // namespace
}  // namespace iha::kernels
