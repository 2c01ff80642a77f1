// epilogue_gpu.h: what stands between attention and o_proj, on the device, in one pass: the combination of a pair of
// heads (differential attention), exclusive self attention, a gate. bf16 rows in and out, fp32 between, rounded to bf16
// once.
//
// Per token and head h, in this order:
//   kNone:       x = a_h
//   kDiffGated:  x = a_2h - sigmoid(l_h) a_2h+1                                     (diff.h, v2)
//   kDiffNormed: y = a_2h - lambda a_2h+1; x = y / sqrt(mean y^2 + eps) * weight * scale (diff.h)
//   xsa (v):     x = x - (x . u) u, u = v / max(||v||, 1e-12), v the token's own value of head h / v_group (xsa.h)
//   gate:        x = x sigmoid(g), g one a head or one an element                   (gate.h)
// Sums over a row: 8 columns in a chain per lane, then pairs of lanes at distance d / 16, .., 1. Rows are independent.
// d is 64, 128 or 256; out may be a where combine is kNone. Reads each input once and writes out once. Returns before
// it is done (target.h); status 1 for a shape outside of these. Source: checkpoints.md, kinds and modifiers.
#pragma once

#include <cstdint>

#include "kernels/simt/target.h"

namespace iha::kernels {

enum class EpilogueCombine : uint32_t { kNone, kDiffGated, kDiffNormed };

struct EpilogueGpuArgs {
  const uint16_t* a = nullptr;  // [token][heads, or 2 heads][d]
  uint16_t* out = nullptr;      // [token][heads][d]
  uint32_t tokens = 0;
  uint32_t heads = 0;  // of out
  uint32_t d = 0;
  EpilogueCombine combine = EpilogueCombine::kNone;
  const float* logits = nullptr;  // kDiffGated: [token][heads]
  uint32_t logits_stride = 0;     // elements between tokens, 0: heads
  const float* weight = nullptr;  // kDiffNormed: [d]
  float lambda = 0.0f;
  float eps = 0.0f;
  uint32_t mean_of = 0;  // kDiffNormed: values of the mean where zeros pad a row, 0: d
  float scale = 1.0f;
  const uint16_t* v = nullptr;  // null: no XSA; token t, value head g at t * v_stride + g * d
  uint32_t v_stride = 0;
  uint32_t v_group = 1;
  const uint16_t* gate = nullptr;  // null: none; [token][heads], elementwise [token][heads][d]
  bool gate_elementwise = false;
  uint32_t gate_stride = 0;  // elements between tokens, 0: dense
};

inline constexpr uint32_t kEpilogueGpuThreads = 128;

GpuStatus AttentionEpilogueGpu(const EpilogueGpuArgs& args, GpuStream stream);
// Its kernel, for d = 8 kLanes, with mean_of and the strides filled in.
template <uint32_t kLanes, EpilogueCombine kCombine>
GpuStatus LaunchEpilogue(const EpilogueGpuArgs& args, GpuStream stream);

}  // namespace iha::kernels
