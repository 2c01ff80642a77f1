// iha_collapse_plain.cuh: the global collapse without XSA, for 16 kHeadTiles heads a block.
#pragma once

#include "kernels/iha_collapse/iha_collapse_global.cuh"

namespace iha::kernels {
namespace {

constexpr uint32_t kColumns = kCollapseGpuColumns;

// Blocks that a multiprocessor holds at once: as many as registers for all sums let it.
constexpr uint32_t BlocksAtOnce(uint32_t head_tiles, uint32_t terms) {
  return head_tiles == 4 ? 2 : head_tiles * terms == 4 ? 3 : 4;
}

// c += R times 32 rows of a at byte `stage`, the chunk's; by a warp.
template <uint32_t kHeadTiles, uint32_t kTerms>
IHA_DEVICE void AddChunk(const IhaCollapseGlobalGpuArgs& p, uint32_t stage, uint32_t chunk,
                         float (&c)[kHeadTiles][8][4]) {
  IHA_UNROLL
  for (uint32_t k = 0; k < kRows / 16; ++k) {
    uint32_t b[8][2];
    IHA_UNROLL
    for (uint32_t n = 0; n < 8; n += 2) {
      const uint32_t at = stage + TileChunk<kColumns>(k * 16 + ptx::Lane() % 16, n + ptx::Lane() / 16);
      uint32_t two[4];
      ptx::LdMatrix<4, true>(two, ptx::DynamicShared<uint16_t>(at));
      for (uint32_t i = 0; i < 4; ++i) b[n + i / 2][i % 2] = two[i];
    }
    IHA_UNROLL
    for (uint32_t term = 0; term < kTerms; ++term) AddTerm(p, term, chunk, k, b, c);
  }
}

// A block: 16 tokens, a warp one at a time; 64 columns; kHeadTiles * 16 heads.
template <uint32_t kHeadTiles, uint32_t kTerms>
IHA_KERNEL void IHA_LAUNCH_BOUNDS(kThreads, BlocksAtOnce(kHeadTiles, kTerms))
    CollapseGlobal(IhaCollapseGlobalGpuArgs p) {
  const uint32_t lane = ptx::Lane(), chunks = ChunksOf(p), first_column = ptx::BlockY() * kColumns;
  const uint32_t first_head = ptx::BlockZ() * kHeadTiles * 16;
  LoadCollapse(p, first_head, kHeadTiles * 16);
  ptx::CpWait<0>();
  ptx::SyncThreads();

  const uint32_t stages = kHeadTiles * 16 * CollapseStride(p) + ptx::WarpIndex() * (2 * kRows + 16) * 128;
  const uint32_t output = stages + 2 * kRows * 128;
  const ptx::Global<const uint16_t> rows(p.a);
  const auto load = [&](uint32_t token, uint32_t chunk) {
    const uint32_t stage = stages + chunk % 2 * kRows * 128;
    ForRows<kColumns, 32>(p, lane, token, first_column, chunk, [&](uint32_t to, size_t from, uint32_t bytes) {
      ptx::CpAsyncFill<16>(ptx::DynamicShared<uint16_t>(stage + to), rows + from, bytes);
    });
    ptx::CpCommit();
  };
  for (uint32_t i = ptx::WarpIndex(); i < kCollapseGpuTokens; i += kCollapseGpuWarps) {
    const uint32_t token = ptx::BlockX() * kCollapseGpuTokens + i;
    if (token >= p.tokens) break;
    float c[kHeadTiles][8][4] = {};
    load(token, 0);
    for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
      if (chunk + 1 < chunks) {
        load(token, chunk + 1);
        ptx::CpWait<1>();
      } else {
        ptx::CpWait<0>();
      }
      ptx::SyncWarp();
      AddChunk<kHeadTiles, kTerms>(p, stages + chunk % 2 * kRows * 128, chunk, c);
      ptx::SyncWarp();  // all lanes are done with the stage that is refilled next
    }
    IHA_UNROLL
    for (uint32_t tile = 0; tile < kHeadTiles; ++tile) {
      StageSums<kColumns>(output, 0, 0, c[tile]);
      ptx::SyncWarp();
      WriteHeads<kColumns, 32>(p, lane, output, token, first_column, first_head + tile * 16, 16);
      ptx::SyncWarp();
    }
  }
}

}  // namespace

template <uint32_t kHeadTiles, uint32_t kTerms>
GpuStatus LaunchCollapseGlobal(const IhaCollapseGlobalGpuArgs& args, GpuStream stream) {
  const CollapseGpuLayout layout = CollapseGpuLayoutFor(args.heads, args.pseudo, args.terms);
  const LaunchShape shape{(args.tokens + kCollapseGpuTokens - 1) / kCollapseGpuTokens, args.d / kColumns,
                          layout.rows / 16 / kHeadTiles, kThreads, CollapseGpuSharedBytes(layout, kHeadTiles, 0)};
  return LaunchKernel("iha_collapse_global", CollapseGlobal<kHeadTiles, kTerms>, shape, stream, args);
}

}  // namespace iha::kernels
