// rope_gpu.h: rotary embedding on the device, bf16 rows in place, fp32 tables.
//
// A pair (u, v): u' = fma(u, cos, -(v * sin)), v' = fma(v, cos, u * sin) in fp32 (rope.h), each rounded to bf16 once.
// Token t is rotated by row positions[t] of the tables ([..][rotary_dim / 2], as FillRopeTable makes them). Elements
// past rotary_dim are left alone. rotary_dim is a multiple of 16 for half pairing, of 8 for interleaved; strides are
// multiples of 8 elements. Reads and writes each rotated element once: 4 bytes an element. Returns before it is done
// (target.h); status 1 for a shape outside of these.
#pragma once

#include <cstdint>

#include "kernels/rope/rope.h"
#include "kernels/simt/target.h"

namespace iha::kernels {

struct RopeGpuArgs {
  uint16_t* x = nullptr;
  const uint32_t* positions = nullptr;  // [tokens]
  const float* cos = nullptr;
  const float* sin = nullptr;
  uint32_t tokens = 0;
  uint32_t heads = 0;
  uint32_t token_stride = 0;  // elements
  uint32_t head_stride = 0;
  uint32_t rotary_dim = 0;
  RopePairing pairing = RopePairing::kHalf;
};

GpuStatus RopeGpu(const RopeGpuArgs& args, GpuStream stream);

}  // namespace iha::kernels
