// peak.h: the machine's roof, measured in the same process as the kernels: fused multiply-adds from registers, and
// reading memory.
//
// Each starts `threads` (>= 1) threads of its own for every run and returns the best of the runs that fit into
// `seconds`, at least three: other jobs may share the cores, and the best is what the machine can do. Blocking; any
// thread. Memory: `bytes` in ReadBandwidthGBs, which throws std::bad_alloc when there are none.
#pragma once

#include <cstddef>

namespace iha::kernels {

// GFLOP/s of `threads` threads doing nothing but fp32 fmas in registers (a multiply and an add are 2 FLOP).
double FmaPeakGflops(int threads, double seconds);
// GB/s (1e9 bytes) of `threads` threads reading a buffer of `bytes`, each its own part. `bytes` well above the caches:
// the bandwidth of memory.
double ReadBandwidthGBs(int threads, size_t bytes, double seconds);

}  // namespace iha::kernels
