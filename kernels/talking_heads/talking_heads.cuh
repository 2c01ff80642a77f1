// talking_heads.cuh: scores and values behind talking_heads_gpu.h.
#pragma once

#include "kernels/attention/flash.cuh"
#include "kernels/talking_heads/talking_heads_gpu.h"

namespace iha::kernels {
namespace {

constexpr uint32_t kWarps = 4;

// Element of `scores` that a row of the tile has for the block's head: its key 0.
IHA_DEVICE size_t ScoreRow(const TalkingHeadsGpuArgs& p, const FlashTile& t, uint32_t tile, uint32_t row) {
  return ((size_t{t.sequence} * p.block_rows + tile * kWarps * 16 + row) * p.attention.heads + t.head) *
         TalkingHeadsGpuStride(p);
}

// A block: 64 rows and 64 keys of one head.
template <uint32_t kD>
IHA_KERNEL void IHA_LAUNCH_BOUNDS(kWarps * 32, 1) TalkingScores(TalkingHeadsGpuArgs p) {
  using F = Flash<kD, kD, kWarps>;
  const uint32_t blocks = TalkingHeadsGpuStride(p) / kKeys, block = ptx::BlockX() % blocks;
  const uint32_t tile = ptx::BlockX() / blocks;
  const FlashTile t = TileAt<kWarps * 16>(p.attention, p.first_row + tile * kWarps * 16);
  if (t.rows == 0 || block < t.begin || block >= t.end) return;
  const ptx::Global<const uint16_t> queries(p.attention.q), keys(p.attention.k_pages);
  CopyRows<kD, kWarps * 16, kWarps * 32>(0, queries + (size_t{t.first_row} * p.attention.heads + t.head) * kD,
                                         size_t{p.attention.heads} * kD, t.rows);
  const uint32_t left = t.keys - block * kKeys;
  CopyRows<kD, kKeys, kWarps * 32>(F::kQBytes, keys + PageRow(p.attention, t, block) * kD, kD,
                                   left < kKeys ? left : kKeys);
  ptx::CpCommit();
  ptx::CpWait<0>();
  ptx::SyncThreads();
  if (!SightOfWarp(p.attention, t).Sees(block)) return;
  SoftmaxRows rows;
  RowsOfLane(p.attention, t, rows);
  float s[kKeys / 8][4] = {};
  F::Scores(F::kQBytes, s);
  const ptx::Global<float> scores(p.scores);
  IHA_UNROLL
  for (uint32_t part = 0; part < 2; ++part) {
    const uint32_t row = ptx::WarpIndex() * 16 + ptx::Lane() / 4 + part * 8;
    if (row >= t.rows || block < rows.first[part] / kKeys || block > rows.last[part] / kKeys) continue;
    const size_t at = ScoreRow(p, t, tile, row) + block * kKeys + ptx::Lane() % 4 * 2;
    IHA_UNROLL
    for (uint32_t n = 0; n < kKeys / 8; ++n) {
      ptx::StoreAs(scores + (at + n * 8),
                   ptx::Pack<float, 2>{{s[n][2 * part] * p.attention.scale, s[n][2 * part + 1] * p.attention.scale}});
    }
  }
}

// A block: 64 rows of one head; two stages of 64 values behind the place for the output.
template <uint32_t kD>
struct TalkingValueStages {
  static constexpr uint32_t kOutputBytes = kWarps * 16 * kD * 2;
  static constexpr uint32_t kStageBytes = kKeys * kD * 2;
  static constexpr uint32_t kBytes = kOutputBytes + 2 * kStageBytes;
  static_assert(kBytes == TalkingValuesGpuSharedBytes(kD));

  IHA_DEVICE static uint32_t At(uint32_t block) { return kOutputBytes + block % 2 * kStageBytes; }
  IHA_DEVICE static void Load(const AttentionGpuArgs& p, const FlashTile& t, uint32_t block) {
    const uint32_t left = t.keys - block * kKeys;
    CopyRows<kD, kKeys, kWarps * 32>(At(block), ptx::Global<const uint16_t>(p.v_pages) + PageRow(p, t, block) * kD, kD,
                                     left < kKeys ? left : kKeys);
    ptx::CpCommit();
  }
};

// The lane's mixed weights of a block, 0 where its rows do not see.
IHA_DEVICE void LoadWeights(const TalkingHeadsGpuArgs& p, const FlashTile& t, const SoftmaxRows& rows, uint32_t block,
                            float (&u)[kKeys / 8][4]) {
  const ptx::Global<const float> scores(p.scores);
  IHA_UNROLL
  for (uint32_t part = 0; part < 2; ++part) {
    const uint32_t row = ptx::WarpIndex() * 16 + ptx::Lane() / 4 + part * 8;
    const bool sees = row < t.rows && block >= rows.first[part] / kKeys && block <= rows.last[part] / kKeys;
    const size_t at = ScoreRow(p, t, ptx::BlockX(), row) + block * kKeys + ptx::Lane() % 4 * 2;
    IHA_UNROLL
    for (uint32_t n = 0; n < kKeys / 8; ++n) {
      auto pair = ptx::Pack<float, 2>{{0.0f, 0.0f}};
      if (sees) pair = ptx::LoadAs<ptx::Pack<float, 2>>(scores + (at + n * 8));
      IHA_UNROLL
      for (uint32_t e = 0; e < 2; ++e) {
        const uint32_t key = block * kKeys + n * 8 + ptx::Lane() % 4 * 2 + e;
        u[n][2 * part + e] = key >= rows.first[part] && key <= rows.last[part] ? pair.v[e] : 0.0f;
      }
    }
  }
}

template <uint32_t kD>
IHA_KERNEL void IHA_LAUNCH_BOUNDS(kWarps * 32, 1) TalkingValues(TalkingHeadsGpuArgs p) {
  using F = Flash<kD, kD, kWarps>;
  using Stages = TalkingValueStages<kD>;
  const FlashTile t = TileAt<kWarps * 16>(p.attention, p.first_row + ptx::BlockX() * kWarps * 16);
  if (t.rows == 0) return;
  Stages::Load(p.attention, t, t.begin);
  SoftmaxRows rows;
  RowsOfLane(p.attention, t, rows);
  const WarpSight sight = SightOfWarp(p.attention, t);
  float o[kD / 8][4] = {};
  for (uint32_t block = t.begin; block < t.end; ++block) {
    if (block + 1 < t.end) {
      Stages::Load(p.attention, t, block + 1);
      ptx::CpWait<1>();
    } else {
      ptx::CpWait<0>();
    }
    ptx::SyncThreads();
    const uint32_t values = Stages::At(block);
    const bool sees = sight.Sees(block);
    // Weights are loaded where they are used: registers for 32 more of them would not be left at kD = 256.
    if (!AllSee(p.attention, t, block) && F::AnyNotFinite(values)) {  // the same in all warps
      if (sees) {
        float u[kKeys / 8][4];
        LoadWeights(p, t, rows, block, u);
        F::template AddNotFinite<true>(block, values, rows, u, o);
      }
      ptx::SyncThreads();
      F::Finite(values);
      ptx::SyncThreads();
    }
    if (sees) {
      float u[kKeys / 8][4];
      LoadWeights(p, t, rows, block, u);
      F::AddValues(values, u, o);
    }
    ptx::SyncThreads();
  }
  if (ptx::WarpIndex() * 16 >= t.rows) return;
  const float none[2] = {0.0f, 0.0f}, one[2] = {1.0f, 1.0f};
  F::Write(p.attention, t, o, none, one);
}

uint32_t TilesOf(const TalkingHeadsGpuArgs& args) { return (args.block_rows + kWarps * 16 - 1) / (kWarps * 16); }

}  // namespace

template <uint32_t kD>
GpuStatus LaunchTalkingScores(const TalkingHeadsGpuArgs& args, GpuStream stream) {
  const LaunchShape shape{TilesOf(args) * (TalkingHeadsGpuStride(args) / kKeys), args.attention.heads,
                          args.attention.sequences, kWarps * 32, (kWarps * 16 + kKeys) * kD * 2};
  return LaunchKernel("talking_scores", TalkingScores<kD>, shape, stream, args);
}

template <uint32_t kD>
GpuStatus LaunchTalkingValues(const TalkingHeadsGpuArgs& args, GpuStream stream) {
  const LaunchShape shape{TilesOf(args), args.attention.heads, args.attention.sequences, kWarps * 32,
                          TalkingValueStages<kD>::kBytes};
  return LaunchKernel("talking_values", TalkingValues<kD>, shape, stream, args);
}

}  // namespace iha::kernels
