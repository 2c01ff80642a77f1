// epilogue.cuh: the kernel behind epilogue_gpu.h.
#pragma once

#include "kernels/epilogue/epilogue_gpu.h"
#include "kernels/epilogue/row_ops.cuh"
#include "kernels/simt/launch.h"

namespace iha::kernels {
namespace {

// A lane's 8 columns of the combined row.
template <uint32_t kLanes, EpilogueCombine kCombine>
IHA_DEVICE void Combine(const EpilogueGpuArgs& p, size_t row, uint32_t head, uint32_t column, bool mine,
                        float (&x)[8]) {
  constexpr uint32_t kRow = kLanes * 8;
  const ptx::Global<const uint16_t> a(p.a);
  if constexpr (kCombine == EpilogueCombine::kNone) {
    if (mine) Widen(ptx::LoadAs<Eight16>(a + (row * kRow + column)), x);
    return;
  }
  float other[8] = {}, factor = p.lambda;
  if (mine) {
    Widen(ptx::LoadAs<Eight16>(a + (row * 2 * kRow + column)), x);
    Widen(ptx::LoadAs<Eight16>(a + ((row * 2 + 1) * kRow + column)), other);
    if constexpr (kCombine == EpilogueCombine::kDiffGated) {
      const size_t at = size_t{ptx::BlockX()} * p.logits_stride + head;
      factor = Sigmoid(ptx::Load(ptx::Global<const float>(p.logits) + at));
    }
  }
  for (int i = 0; i < 8; ++i) x[i] = fmaf(-factor, other[i], x[i]);
  if constexpr (kCombine == EpilogueCombine::kDiffNormed) {
    const float r = RootMeanSquare<kLanes>(x, p.mean_of, p.eps);
    const ptx::Global<const float> weight(p.weight);
    for (int i = 0; i < 8; i += 4) {
      const auto four = ptx::LoadAs<ptx::Pack<float, 4>>(weight + (column + static_cast<uint32_t>(i)));
      for (int j = 0; j < 4; ++j) x[i + j] = x[i + j] * r * four.v[j] * p.scale;
    }
  }
}

// A block a token; all lanes stay for the shuffles, those past the last head compute zeros and write nothing.
template <uint32_t kLanes, EpilogueCombine kCombine>
IHA_KERNEL void IHA_LAUNCH_BOUNDS(kEpilogueGpuThreads, 1) Epilogue(EpilogueGpuArgs p) {
  constexpr uint32_t kRow = kLanes * 8;
  const ptx::Global<const uint16_t> values(p.v), gates(p.gate);
  const ptx::Global<uint16_t> out(p.out);
  const size_t token = ptx::BlockX();
  const uint32_t column = ptx::ThreadX() % kLanes * 8;
  for (uint32_t first = 0; first < p.heads; first += kEpilogueGpuThreads / kLanes) {
    const uint32_t head = first + ptx::ThreadX() / kLanes;
    const bool mine = head < p.heads;
    const size_t row = token * p.heads + head;
    float x[8] = {};
    Combine<kLanes, kCombine>(p, row, head, column, mine, x);
    if (p.v != nullptr) {
      float v[8] = {};
      if (mine)
        Widen(ptx::LoadAs<Eight16>(values + (token * p.v_stride + size_t{head / p.v_group} * kRow + column)), v);
      TakeOutValue<kLanes>(v, x);
    }
    if (!mine) continue;
    if (p.gate != nullptr && p.gate_elementwise) {
      float g[8];
      Widen(ptx::LoadAs<Eight16>(gates + (token * p.gate_stride + (head * kRow + column))), g);
      for (int i = 0; i < 8; ++i) x[i] *= Sigmoid(g[i]);
    } else if (p.gate != nullptr) {
      const float g = Sigmoid(ptx::BF16ToFloat(ptx::Load(gates + (token * p.gate_stride + head))));
      for (int i = 0; i < 8; ++i) x[i] *= g;
    }
    ptx::StoreAs(out + (row * kRow + column), Narrow(x));
  }
}

}  // namespace

template <uint32_t kLanes, EpilogueCombine kCombine>
GpuStatus LaunchEpilogue(const EpilogueGpuArgs& args, GpuStream stream) {
  const LaunchShape shape{args.tokens, 1, 1, kEpilogueGpuThreads, 0};
  return LaunchKernel("attention_epilogue", Epilogue<kLanes, kCombine>, shape, stream, args);
}

}  // namespace iha::kernels
