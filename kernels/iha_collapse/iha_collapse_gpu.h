// iha_collapse_gpu.h: the outputs of P pseudo heads back to one row a head, on the device, with XSA before it.
//
// a: outputs of attention over virtual tokens, a[((t P + j) H + h) d + i], bf16. Per head (paper Algorithm 1):
// O[h] = sum over j of R[h][j] z[h][j], one fma chain in increasing j from 0 in fp32, rounded to bf16 once; R fp32
// [H][P]. z = a, or with v (values of the same layout) z = a - (a . u) u, u = v / max(||v||, 1e-12): squares and
// products of 8 columns in a chain per lane, then pairs of lanes; z is not rounded. out: [t][H][d]. One pass: reads a
// (and v) once, writes out once. A token's bits depend on its own rows only. d is 64, 128 or 256. Returns before it is
// done (target.h); status 1 for a shape outside of these.
#pragma once

#include <cstdint>

#include "kernels/simt/target.h"

namespace iha::kernels {

struct IhaCollapseGpuArgs {
  const uint16_t* a = nullptr;
  const uint16_t* v = nullptr;  // null: no XSA
  const float* collapse = nullptr;
  uint16_t* out = nullptr;
  uint32_t tokens = 0;
  uint32_t heads = 0;
  uint32_t pseudo = 0;
  uint32_t d = 0;
};

inline constexpr uint32_t kCollapseGpuThreads = 128;

GpuStatus IhaCollapseGpu(const IhaCollapseGpuArgs& args, GpuStream stream);

}  // namespace iha::kernels
