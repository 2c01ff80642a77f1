// fma_peak.h: the machine's roof, measured in the same process as the kernels: fused multiply-adds from registers, and
// reading memory.
#pragma once

#include <cstddef>

namespace iha::bench {

// GFLOP/s of `threads` threads doing nothing but fp32 fmas in registers, best of many short runs.
double FmaPeakGflops(int threads);
// GB/s of `threads` threads reading a buffer of `bytes`, best of many passes.
double ReadBandwidthGBs(int threads, size_t bytes);

}  // namespace iha::bench
