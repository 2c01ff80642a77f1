// talking_mixes.cuh: the mixes behind talking_heads_gpu.h.
#pragma once

#include "kernels/simt/device_math.h"
#include "kernels/simt/launch.h"
#include "kernels/talking_heads/talking_heads_gpu.h"

namespace iha::kernels {
namespace {

constexpr uint32_t kThreads = kTalkingGpuThreads, kWarps = kThreads / 32;
constexpr float kLog2E = 1.44269504088896341f;

// Bytes of shared memory: two matrices [to][from], padded with zeros to kHeads, then m log2 e and l of each head.
template <uint32_t kHeads>
struct MixPlan {
  static constexpr uint32_t kPre = 0, kPost = kHeads * kHeads * 4, kMax = 2 * kPost, kSum = kMax + kHeads * 4;
  static constexpr uint32_t kBytes = kSum + kHeads * 4;
  static_assert(kBytes == TalkingMixesGpuSharedBytes(kHeads));
};

// A matrix [from][to] of the caller, turned.
template <uint32_t kHeads>
IHA_DEVICE void LoadMatrix(uint32_t to, ptx::Global<const float> from, uint32_t heads) {
  for (uint32_t i = ptx::ThreadX(); i < kHeads * kHeads; i += kThreads) {
    const uint32_t b = i / kHeads, a = i % kHeads;
    const bool in = a < heads && b < heads;
    ptx::Store(ptx::DynamicShared<float>(to + i * 4), in ? ptx::Load(from + (a * heads + b)) : 0.0f);
  }
}

// y[b] = sum over a of mix[b][a] x[a], stored to `row` at b * stride: what one key's heads become.
template <uint32_t kHeads>
IHA_DEVICE void StoreMixed(uint32_t mix, const float (&x)[kHeads], ptx::Global<float> row, uint32_t heads,
                           size_t stride) {
  for (uint32_t b = 0; b < heads; ++b) {
    float sum = 0.0f;
    IHA_UNROLL
    for (uint32_t a = 0; a < kHeads; a += 4) {
      const auto four = ptx::LoadAs<ptx::Pack<float, 4>>(ptx::DynamicShared<float>(mix + (b * kHeads + a) * 4));
      for (uint32_t i = 0; i < 4; ++i) sum = fmaf(four.v[i], x[a + i], sum);
    }
    ptx::Store(row + b * stride, sum);
  }
}

// m and l of a head over the keys first .. last, by one warp; m already times log2 e.
IHA_DEVICE void SumHead(ptx::Global<const float> row, uint32_t first, uint32_t last, float& shift, float& sum) {
  const uint32_t begin = first / 32 * 32 + ptx::Lane(), from = begin < first ? begin + 32 : begin;
  float m = -INFINITY;
  for (uint32_t key = from; key <= last; key += 32) {
    const float x = ptx::Load(row + key);
    m = x > m || x != x ? x : m;  // a NaN stays
  }
  for (uint32_t step = 16; step > 0; step /= 2) {
    const float other = ptx::ShflXor(ptx::kAllLanes, m, step);
    m = other > m || other != other ? other : m;
  }
  shift = m * kLog2E;
  sum = 0.0f;
  for (uint32_t key = from; key <= last; key += 32) sum += ptx::Exp2(fmaf(ptx::Load(row + key), kLog2E, -shift));
  sum = SumLanes(sum);
}

// A block a row; a thread a key, a warp a head.
template <uint32_t kHeads>
IHA_KERNEL void IHA_LAUNCH_BOUNDS(kThreads, 1) TalkingMixes(TalkingHeadsGpuArgs p) {
  using Plan = MixPlan<kHeads>;
  const AttentionGpuArgs& attention = p.attention;
  const uint32_t sequence = ptx::BlockZ(), at = p.first_row + ptx::BlockX(), heads = attention.heads;
  const ptx::Global<const uint32_t> begins(attention.q_begin), lengths(attention.kv_length);
  const uint32_t rows = ptx::Load(begins + (sequence + 1)) - ptx::Load(begins + sequence);
  if (at >= rows) return;
  const VisibleKeys v = VisibleTo(attention.mask, ptx::Load(lengths + sequence) - rows + at);
  const size_t stride = TalkingHeadsGpuStride(p);
  const ptx::Global<float> row =
      ptx::Global<float>(p.scores) + (size_t{sequence} * p.block_rows + ptx::BlockX()) * heads * stride;
  LoadMatrix<kHeads>(Plan::kPre, ptx::Global<const float>(p.pre), heads);
  LoadMatrix<kHeads>(Plan::kPost, ptx::Global<const float>(p.post), heads);
  ptx::SyncThreads();
  for (uint32_t key = v.first + ptx::ThreadX(); key <= v.last; key += kThreads) {
    float x[kHeads];
    IHA_UNROLL
    for (uint32_t a = 0; a < kHeads; ++a) x[a] = a < heads ? ptx::Load(row + (a * stride + key)) : 0.0f;
    StoreMixed<kHeads>(Plan::kPre, x, row + key, heads, stride);
  }
  ptx::SyncThreads();
  for (uint32_t head = ptx::WarpIndex(); head < heads; head += kWarps) {
    float shift, sum;
    SumHead(ptx::Global<const float>(p.scores) +
                (((size_t{sequence} * p.block_rows + ptx::BlockX()) * heads + head) * stride),
            v.first, v.last, shift, sum);
    if (ptx::Lane() == 0) {
      ptx::Store(ptx::DynamicShared<float>(Plan::kMax + head * 4), shift);
      ptx::Store(ptx::DynamicShared<float>(Plan::kSum + head * 4), sum);
    }
  }
  ptx::SyncThreads();
  for (uint32_t key = v.first + ptx::ThreadX(); key <= v.last; key += kThreads) {
    float x[kHeads];
    IHA_UNROLL
    for (uint32_t b = 0; b < kHeads; ++b) {
      x[b] = 0.0f;
      if (b >= heads) continue;
      const float shift = ptx::Load(ptx::DynamicShared<float>(Plan::kMax + b * 4));
      const float sum = ptx::Load(ptx::DynamicShared<float>(Plan::kSum + b * 4));
      x[b] = ptx::Exp2(fmaf(ptx::Load(row + (b * stride + key)), kLog2E, -shift)) / sum;
    }
    StoreMixed<kHeads>(Plan::kPost, x, row + key, heads, stride);
  }
}

}  // namespace

template <uint32_t kHeads>
GpuStatus LaunchTalkingMixes(const TalkingHeadsGpuArgs& args, GpuStream stream) {
  const uint32_t left = args.attention.max_rows - args.first_row;
  const LaunchShape shape{left < args.block_rows ? left : args.block_rows, 1, args.attention.sequences, kThreads,
                          MixPlan<kHeads>::kBytes};
  return LaunchKernel("talking_mixes", TalkingMixes<kHeads>, shape, stream, args);
}

}  // namespace iha::kernels
