// seeded_kernels.cuh: small kernels in the manner of ours, each with bugs that a number switches on (0: none).
//
// Device text for both compilers. seeded_bugs_test.cc runs every bug and expects the emulator, or the result, to show
// it.
#pragma once

#include <cstdint>

#include "kernels/simt/launch.h"

namespace iha::kernels {

enum SeededBug : int {
  kNoBug = 0,
  // SeededGemm
  kNoBarrierAfterWait,
  kNoBarrierBeforeRefill,
  kNoWait,
  kWaitLeavesLastGroup,
  kWrongStage,
  kNoCommit,
  kSwizzleOnWriteOnly,
  kNoSwizzle,
  kTailReadsOn,
  kRowsStoredPastTheEnd,
  kTileNotTransposed,
  kFragmentRegistersSwapped,
  kWrongWarpRow,
  kSharedTooSmall,
  kRowsNotZeroFilled,
  kRefillOneStageEarly,
  // SeededSoftmax
  kNoBarrierBeforePartials,
  kNoBarrierBetweenReductions,
  kPartialsOfAbsentWarps,
  kShuffleDownForXor,
  kShuffleMaskLacksLane,
  kShuffleAfterEarlyReturn,
  kMaskOffByOne,
  kBarrierInBranch,
  kShuffleStepMissing,
  kWindowTooLong,
  // SeededTranspose
  kNoSyncWarp,
  kSyncHalfWarp,
  kRowTooNarrow,
  kReadsOwnColumn,
  kNoSyncBeforeOverwrite,
  // SeededPipe
  kWrongBarrier,
  kWrongCount,
  kNoEmptyWait,
  kNoArrive,
  kWrongPhase,
  // SeededHistogram
  kPlainSharedAdd,
  kPlainGlobalAdd,
  kNotZeroed,
  kNoBarrierAfterZeroing,
  kBlocksOverlap,
  kMisalignedLoad,
  kLoadPastTheEnd,
  kNoBarrierBeforeFlush,
  kBugs
};

struct SeededArgs {
  const uint16_t* a = nullptr;
  const uint16_t* b = nullptr;
  const float* x = nullptr;
  float* y = nullptr;
  uint32_t* counts = nullptr;
  int m = 0;
  int n = 0;
  int k = 0;
  int bug = 0;
};

// y[m][n] = a[m][k] b[k][n] in bf16; 32 x 32 tiles, 4 warps, two stages of 32 k. k and n are multiples of 8.
inline constexpr int kSeededStage = 32 * 64;  // bytes of one 32 x 32 tile
IHA_DEVICE uint32_t SeededOffset(int row, int chunk, bool swizzle) {
  return static_cast<uint32_t>(row * 64 + (swizzle ? chunk ^ (row >> 1 & 3) : chunk) * 16);
}
IHA_DEVICE void SeededLoad(const SeededArgs& p, int k0, int stage) {
  const ptx::Global<const uint16_t> a(p.a), b(p.b);
  const int row = static_cast<int>(ptx::ThreadX()) / 4, chunk = static_cast<int>(ptx::ThreadX()) % 4;
  const int m = static_cast<int>(ptx::BlockX()) * 32 + row, n = static_cast<int>(ptx::BlockY()) * 32 + chunk * 8;
  const uint32_t at = SeededOffset(row, chunk, p.bug != kNoSwizzle);
  const auto to_a = ptx::DynamicShared<uint16_t>(stage * 2 * kSeededStage + at);
  const auto to_b = ptx::DynamicShared<uint16_t>(stage * 2 * kSeededStage + kSeededStage + at);
  const bool in_a = (m < p.m && k0 + chunk * 8 < p.k) || p.bug == kTailReadsOn;
  if (in_a) {
    ptx::CpAsync<16>(to_a, a + (m * p.k + k0 + chunk * 8));
  } else if (p.bug != kRowsNotZeroFilled) {
    ptx::CpAsyncFill<16>(to_a, a, 0);
  }
  const bool in_b = k0 + row < p.k && n < p.n;
  ptx::CpAsyncFill<16>(to_b, in_b ? b + ((k0 + row) * p.n + n) : b, in_b ? 16 : 0);
  if (p.bug != kNoCommit) ptx::CpCommit();
}
IHA_DEVICE void SeededMultiply(const SeededArgs& p, int stage, float (&c)[2][4]) {
  const int lane = static_cast<int>(ptx::Lane()), warp = static_cast<int>(ptx::WarpIndex());
  const int row = (p.bug == kWrongWarpRow ? 1 - warp / 2 : warp / 2) * 16, column = warp % 2 * 16;
  const bool swizzle = p.bug != kNoSwizzle && p.bug != kSwizzleOnWriteOnly;
  const int base = stage * 2 * kSeededStage;
  for (int k = 0; k < 32; k += 16) {
    uint32_t a[4], b[4];
    ptx::LdMatrix<4, false>(
        a, ptx::DynamicShared<uint16_t>(base + SeededOffset(row + lane % 16, k / 8 + lane / 16, swizzle)));
    const uint32_t at = base + kSeededStage + SeededOffset(k + lane % 16, column / 8 + lane / 16, swizzle);
    if (p.bug == kTileNotTransposed) {
      ptx::LdMatrix<4, false>(b, ptx::DynamicShared<uint16_t>(at));
    } else {
      ptx::LdMatrix<4, true>(b, ptx::DynamicShared<uint16_t>(at));
    }
    const uint32_t left[2] = {b[0], b[1]}, right[2] = {b[2], b[3]};
    const bool swap = p.bug == kFragmentRegistersSwapped;
    const uint32_t left_rows[4] = {a[0], a[swap ? 2 : 1], a[swap ? 1 : 2], a[3]};
    ptx::MmaBF16(c[0], left_rows, left);
    ptx::MmaBF16(c[1], left_rows, right);
  }
}
IHA_KERNEL void SeededGemm(SeededArgs p) {
  float c[2][4] = {};
  const int tiles = (p.k + 31) / 32;
  SeededLoad(p, 0, 0);
  for (int t = 0; t < tiles; ++t) {
    const int stage = p.bug == kWrongStage ? 1 - t % 2 : t % 2;
    if (t + 1 < tiles) {
      SeededLoad(p, (t + 1) * 32, p.bug == kRefillOneStageEarly ? t % 2 : (t + 1) % 2);
      if (p.bug != kNoWait) ptx::CpWait<1>();
    } else if (p.bug == kWaitLeavesLastGroup) {
      ptx::CpWait<1>();
    } else if (p.bug != kNoWait) {
      ptx::CpWait<0>();
    }
    if (p.bug != kNoBarrierAfterWait) ptx::SyncThreads();
    SeededMultiply(p, stage, c);
    if (p.bug != kNoBarrierBeforeRefill) ptx::SyncThreads();
  }
  ptx::CpWaitAll();
  const ptx::Global<float> y(p.y);
  const int lane = static_cast<int>(ptx::Lane()), warp = static_cast<int>(ptx::WarpIndex());
  for (int part = 0; part < 2; ++part) {
    for (int i = 0; i < 4; ++i) {
      const int m = static_cast<int>(ptx::BlockX()) * 32 + warp / 2 * 16 + lane / 4 + i / 2 * 8;
      const int n = static_cast<int>(ptx::BlockY()) * 32 + warp % 2 * 16 + part * 8 + lane % 4 * 2 + i % 2;
      if ((m < p.m || p.bug == kRowsStoredPastTheEnd) && n < p.n) ptx::Store(y + (m * p.n + n), c[part][i]);
    }
  }
}

// y[m] = softmax of x[m][0 .. m] over the window of the last k columns (row m sees at most n columns); a block a row.
IHA_DEVICE float SeededJoin(float a, float b, bool sum) { return sum ? a + b : (a > b ? a : b); }
IHA_DEVICE float SeededReduce(const SeededArgs& p, float v, bool sum) {
  const auto partials = ptx::DynamicShared<float>();
  const uint32_t mask = p.bug == kShuffleMaskLacksLane ? 0x7FFFFFFFu : ptx::kAllLanes;
  for (uint32_t step = 16; step > (p.bug == kShuffleStepMissing ? 1u : 0u); step /= 2) {
    v = SeededJoin(v, p.bug == kShuffleDownForXor ? ptx::ShflDown(mask, v, step) : ptx::ShflXor(mask, v, step), sum);
  }
  if (p.bug != kNoBarrierBetweenReductions) ptx::SyncThreads();
  if (ptx::Lane() == (p.bug == kShuffleDownForXor ? 31 : 0)) ptx::Store(partials + ptx::WarpIndex(), v);
  if (p.bug == kBarrierInBranch) {
    if (ptx::Lane() < 16) {
      ptx::SyncThreads();
    } else {
      ptx::SyncThreads();
    }
  } else if (p.bug != kNoBarrierBeforePartials) {
    ptx::SyncThreads();
  }
  const uint32_t warps = p.bug == kPartialsOfAbsentWarps ? 8 : ptx::BlockDimX() / 32;
  float all = ptx::Load(partials + 0);
  for (uint32_t w = 1; w < warps; ++w) all = SeededJoin(all, ptx::Load(partials + w), sum);
  return all;
}
IHA_KERNEL void SeededSoftmax(SeededArgs p) {
  const ptx::Global<const float> x(p.x);
  const ptx::Global<float> y(p.y);
  const int row = static_cast<int>(ptx::BlockX()), column = static_cast<int>(ptx::ThreadX());
  if (p.bug == kShuffleAfterEarlyReturn && column > row + 1) return;
  const int last = p.bug == kMaskOffByOne ? row + 1 : row, window = p.bug == kWindowTooLong ? p.k + 1 : p.k;
  const bool visible = column <= last && column > row - window && column < p.n;
  const float value = visible ? ptx::Load(x + (row * p.n + column)) : -1e30f;
  const float e = visible ? ptx::Exp2(value - SeededReduce(p, value, false)) : (SeededReduce(p, value, false), 0.0f);
  const float sum = SeededReduce(p, e, true);
  if (column < p.n) ptx::Store(y + (row * p.n + column), e / sum);
}

// y = transpose of each 32 x 32 matrix of x, through shared memory of the warp, twice over the same bytes.
IHA_KERNEL void SeededTranspose(SeededArgs p) {
  const ptx::Global<const float> x(p.x);
  const ptx::Global<float> y(p.y);
  const uint32_t lane = ptx::Lane(), width = p.bug == kRowTooNarrow ? 31 : 33;
  const auto tile = ptx::DynamicShared<float>(ptx::WarpIndex() * 32 * 33 * sizeof(float));
  for (uint32_t round = 0; round < 2; ++round) {
    const uint32_t matrix = (ptx::WarpIndex() * 2 + round) * 1024;
    for (uint32_t i = 0; i < 32; ++i) ptx::Store(tile + (i * width + lane), ptx::Load(x + (matrix + i * 32 + lane)));
    if (p.bug == kSyncHalfWarp) {
      ptx::SyncWarp(lane < 16 ? 0x0000FFFFu : 0xFFFF0000u);
    } else if (p.bug != kNoSyncWarp) {
      ptx::SyncWarp();
    }
    for (uint32_t i = 0; i < 32; ++i) {
      const uint32_t at = p.bug == kReadsOwnColumn ? i * width + lane : lane * width + i;
      ptx::Store(y + (matrix + i * 32 + lane), ptx::Load(tile + at));
    }
    if (p.bug != kNoSyncBeforeOverwrite) ptx::SyncWarp();
  }
}

// y = 2 x, by one warp that fills one of two buffers and one that empties it; barriers 1, 2 full, 3, 4 empty.
IHA_KERNEL void SeededPipe(SeededArgs p) {
  const ptx::Global<const float> x(p.x);
  const ptx::Global<float> y(p.y);
  const auto buffers = ptx::DynamicShared<float>();
  const uint32_t lane = ptx::Lane(), threads = p.bug == kWrongCount ? 32 : 64;
  for (int i = 0; i < p.n; ++i) {
    const uint32_t stage = static_cast<uint32_t>(i % 2), full = 1 + stage, empty = 3 + stage;
    if (ptx::WarpIndex() == 0) {
      if (i >= 2 && p.bug != kNoEmptyWait) ptx::BarSync(empty, 64);
      ptx::Store(buffers + (stage * 32 + lane), ptx::Load(x + (i * 32 + static_cast<int>(lane))));
      if (p.bug != kNoArrive) ptx::BarArrive(full, 64);
    } else {
      ptx::BarSync(p.bug == kWrongBarrier ? 3 - full : full, threads);
      const uint32_t from = p.bug == kWrongPhase ? 1 - stage : stage;
      ptx::Store(y + (i * 32 + static_cast<int>(lane)), 2 * ptx::Load(buffers + (from * 32 + (31 - lane))));
      if (i + 2 < p.n) ptx::BarArrive(empty, 64);
    }
  }
}

// counts[v] += how often v = x modulo 64 occurs in x[n], a slice of k values a block; n and k are multiples of 4.
IHA_KERNEL void SeededHistogram(SeededArgs p) {
  const ptx::Global<const float> x(p.x);
  const ptx::Global<uint32_t> counts(p.counts);
  const ptx::Global<float> y(p.y);
  const auto mine = ptx::DynamicShared<uint32_t>();
  const uint32_t thread = ptx::ThreadX();
  if (p.bug != kNotZeroed && thread < 64) ptx::Store(mine + thread, 0u);
  if (p.bug != kNoBarrierAfterZeroing) ptx::SyncThreads();
  const int first = static_cast<int>(ptx::BlockX()) * p.k;
  int last = first + p.k < p.n || p.bug == kLoadPastTheEnd ? first + p.k : p.n;
  for (int i = first + static_cast<int>(thread) * 4; i < last; i += static_cast<int>(ptx::BlockDimX()) * 4) {
    const auto four = ptx::LoadAs<ptx::Pack<float, 4>>(x + (p.bug == kMisalignedLoad && i + 5 < last ? i + 1 : i));
    for (float v : four.v) {
      const uint32_t bin = static_cast<uint32_t>(v) % 64;
      if (p.bug == kPlainSharedAdd) {
        ptx::Store(mine + bin, ptx::Load(mine + bin) + 1);
      } else {
        ptx::AtomicAdd(mine + bin, 1u);
      }
    }
  }
  if (p.bug != kNoBarrierBeforeFlush) ptx::SyncThreads();
  if (thread >= 64) return;
  const uint32_t sum = ptx::Load(mine + thread);
  if (p.bug == kPlainGlobalAdd) {
    ptx::Store(counts + thread, ptx::Load(counts + thread) + sum);
  } else {
    ptx::AtomicAdd(counts + thread, sum);
  }
  const uint32_t slot = p.bug == kBlocksOverlap ? ptx::BlockX() / 2 : ptx::BlockX();
  ptx::Store(y + (slot * 64 + thread), static_cast<float>(sum));
}

}  // namespace iha::kernels
