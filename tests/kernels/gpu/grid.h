// grid.h: a kernel over a pairwise-covering grid of shapes, in the emulator's schedules.
//
// CI runs each shape in one schedule, all six of them in turn, within the grid's share of 2e9 emulated multiply-adds;
// with IHA_EVAL_GPU_GRIDS=all (`./dev full`, ctest gpu_kernel_grids) each shape in all six.
#pragma once

#include <cstdlib>
#include <limits>
#include <numeric>

#include "tests/kernels/gpu/gpu_test_util.h"

namespace iha::kernels {

// Multiply-adds of mma, as Counters has them. Grids of kernels without mma have no share.
namespace grid_share {
inline constexpr uint64_t kMillion = 1000000;
inline constexpr uint64_t kAttention = 380 * kMillion;
inline constexpr uint64_t kSplit = 300 * kMillion;
inline constexpr uint64_t kTalking = 520 * kMillion;
inline constexpr uint64_t kMix = 95 * kMillion;       // of few heads, and of many
inline constexpr uint64_t kMixNorm = 135 * kMillion;  // the same
inline constexpr uint64_t kCollapseGlobal = 130 * kMillion;
inline constexpr uint64_t kMatmul = 180 * kMillion;
inline constexpr uint64_t kNone = 0;
static_assert(kAttention + kSplit + kTalking + 2 * kMix + 2 * kMixNorm + kCollapseGlobal + kMatmul <= 2000 * kMillion);
}  // namespace grid_share

// What of a shape does not depend on the schedule is prepared once; the check then runs on each device.
using GridCheck = std::function<void(simt::Device&)>;
inline void OverGrid([[maybe_unused]] uint64_t share, const std::vector<size_t>& levels,
                     const std::function<GridCheck(const std::vector<size_t>&, uint32_t)>& prepare,
                     const GridCost& cost = {}) {
  const char* const grids = std::getenv("IHA_EVAL_GPU_GRIDS");
  const bool all = grids != nullptr && std::string(grids) == "all";
  uint32_t number = 0;
  std::vector<simt::Count> used;
  for (const std::vector<size_t>& row : PairwiseCover(levels, cost)) {
    const GridCheck check = prepare(row, number);
    for (uint32_t schedule = 0; schedule < (all ? 6u : 1u); ++schedule) {
      simt::Device device(ScheduleOf(number + schedule));
      check(device);
      used.push_back(device.total().mma_multiply_adds);
      if (::testing::Test::HasFatalFailure()) return;
    }
    ++number;
  }
  // The two largest factors alone need so many shapes.
  std::vector<size_t> sorted = levels;
  std::sort(sorted.rbegin(), sorted.rend());
  EXPECT_GE(number, sorted[0] * sorted[1]);
#ifndef IHA_GPU_CUDA
  const uint64_t sum = std::accumulate(used.begin(), used.end(), uint64_t{0});
  ::testing::Test::RecordProperty("multiply_adds", std::to_string(sum));
  EXPECT_LE(sum, share * (all ? 6u : 1u));
#endif
}

// What a grid puts among a kernel's inputs.
inline constexpr float kNotFinite[] = {0.0f, std::numeric_limits<float>::quiet_NaN(),
                                       std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()};
// The i-th value of x := kNotFinite[kind] (0: left alone).
inline void PutNotFinite(Rounded& x, size_t i, size_t kind) {
  if (kind == 0 || x.bits.empty()) return;
  i %= x.bits.size();
  x.values[i] = kNotFinite[kind];
  x.bits[i] = RoundToBF16(kNotFinite[kind]);
}

}  // namespace iha::kernels
