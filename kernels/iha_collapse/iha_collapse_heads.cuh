// iha_collapse_heads.cuh: the kernel behind iha_collapse_gpu.h, per head.
#pragma once

#include "kernels/epilogue/row_ops.cuh"
#include "kernels/iha_collapse/iha_collapse_gpu.h"
#include "kernels/simt/launch.h"

namespace iha::kernels {
namespace {

// A block a token; a thread 8 columns of a head. All lanes stay for the shuffles; those past the last head compute
// its row again and write nothing.
template <uint32_t kLanes, bool kXsa>
IHA_KERNEL void IHA_LAUNCH_BOUNDS(kCollapseGpuThreads, 1) CollapseHeads(IhaCollapseGpuArgs p) {
  constexpr uint32_t kRow = kLanes * 8;
  const ptx::Global<const uint16_t> a(p.a), values(p.v);
  const ptx::Global<const float> collapse(p.collapse);
  const ptx::Global<uint16_t> out(p.out);
  const uint32_t column = ptx::ThreadX() % kLanes * 8, heads_at_once = kCollapseGpuThreads / kLanes;
  for (uint32_t first = 0; first < p.heads; first += heads_at_once) {
    const uint32_t head = first + ptx::ThreadX() / kLanes;
    const bool mine = head < p.heads;
    float sum[8] = {};
    for (uint32_t j = 0; j < p.pseudo; ++j) {
      const size_t at = ((size_t{ptx::BlockX()} * p.pseudo + j) * p.heads + head) * kRow + column;
      float z[8] = {}, v[8] = {};
      if (mine) Widen(ptx::LoadAs<Eight16>(a + at), z);
      if constexpr (kXsa) {
        if (mine) Widen(ptx::LoadAs<Eight16>(values + at), v);
        TakeOutValue<kLanes>(v, z);
      }
      const float r = mine ? ptx::Load(collapse + (head * p.pseudo + j)) : 0.0f;
      for (int i = 0; i < 8; ++i) sum[i] = fmaf(r, z[i], sum[i]);
    }
    if (mine) ptx::StoreAs(out + ((size_t{ptx::BlockX()} * p.heads + head) * kRow + column), Narrow(sum));
  }
}

}  // namespace

template <uint32_t kLanes, bool kXsa>
GpuStatus LaunchCollapseHeads(const IhaCollapseGpuArgs& args, GpuStream stream) {
  return LaunchKernel("iha_collapse", CollapseHeads<kLanes, kXsa>, {args.tokens, 1, 1, kCollapseGpuThreads, 0}, stream,
                      args);
}

}  // namespace iha::kernels
