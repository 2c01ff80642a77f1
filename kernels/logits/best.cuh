// best.cuh: the largest value of a row and its lowest index, over the lanes of a warp.
#pragma once

#include "kernels/simt/ptx.h"

namespace iha::kernels {

inline constexpr int32_t kNoIndex = 0x7FFFFFFF;  // later than every index

struct Best {
  float value = -INFINITY;
  int32_t index = kNoIndex;
  bool nan = false;
};

IHA_DEVICE void Take(Best& best, float value, int32_t index, bool nan) {
  best.nan = best.nan || nan;
  if (value > best.value || (value == best.value && index < best.index)) {
    best.value = value;
    best.index = index;
  }
}

IHA_DEVICE Best BestOfWarp(Best best) {
  for (uint32_t step = 16; step > 0; step /= 2) {
    const float value = ptx::ShflXor(ptx::kAllLanes, best.value, step);
    const int32_t index = ptx::ShflXor(ptx::kAllLanes, best.index, step);
    Take(best, value, index, false);
  }
  best.nan = ptx::Any(ptx::kAllLanes, best.nan);
  return best;
}

// The best of a block from those of its warps, for its first thread or all: `at` is a byte of shared memory with room
// for a float and an index per warp. Comes with a barrier.
template <uint32_t kWarps>
IHA_DEVICE Best BestOfBlock(Best best, uint32_t at) {
  best = BestOfWarp(best);
  const auto values = ptx::DynamicShared<float>(at);
  const auto indices = ptx::DynamicShared<int32_t>(at + kWarps * 4);
  if (ptx::Lane() == 0) {
    ptx::Store(values + ptx::WarpIndex(), best.value);
    ptx::Store(indices + ptx::WarpIndex(), best.nan ? -1 : best.index);
  }
  ptx::SyncThreads();
  Best all;
  for (uint32_t warp = 0; warp < kWarps; ++warp) {
    const int32_t index = ptx::Load(indices + warp);
    Take(all, ptx::Load(values + warp), index, index == -1);
  }
  return all;
}

}  // namespace iha::kernels
