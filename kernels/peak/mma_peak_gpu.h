// mma_peak_gpu.h: how fast a device multiplies by mma.sync when nothing else is in the way.
//
// Each of `blocks` blocks of 8 warps does `rounds` times 8 products of 16 x 8 x 16 into independent accumulators, all
// in registers, and writes the sum of its accumulators, so that nothing is left out. What kernels without wgmma can
// reach at most: gpu_bench puts them beside it. Returns before it is done (target.h).
#pragma once

#include <cstdint>

#include "kernels/simt/target.h"

namespace iha::kernels {

struct MmaPeakGpuArgs {
  float* out = nullptr;  // [blocks][kMmaPeakGpuThreads]
  uint32_t blocks = 0;
  uint32_t rounds = 0;
};

inline constexpr uint32_t kMmaPeakGpuThreads = 256;
constexpr uint64_t MmaPeakGpuMultiplyAdds(const MmaPeakGpuArgs& a) {
  return uint64_t{a.blocks} * (kMmaPeakGpuThreads / 32) * a.rounds * 8 * (16 * 8 * 16);
}

GpuStatus MmaPeakGpu(const MmaPeakGpuArgs& args, GpuStream stream);

}  // namespace iha::kernels
