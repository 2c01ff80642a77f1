// iha_collapse_xsa.cuh: the global collapse with XSA, for 16 kHeadTiles heads a block and heads of kD.
#pragma once

#include "kernels/epilogue/row_ops.cuh"
#include "kernels/iha_collapse/iha_collapse_global.cuh"

namespace iha::kernels {
namespace {

// Shared memory: R, then two stages of rows of a and of v behind each other. The output is staged in the first one.
template <uint32_t kD>
struct Stages {
  static constexpr uint32_t kTile = kRows * kD * 2;

  uint32_t begin;
  [[nodiscard]] IHA_DEVICE uint32_t At(uint32_t chunk) const { return begin + chunk % 2 * 2 * kTile; }

  IHA_DEVICE void Load(const IhaCollapseGlobalGpuArgs& p, uint32_t token, uint32_t chunk) const {
    const ptx::Global<const uint16_t> a(p.a), v(p.v);
    const uint32_t stage = At(chunk);
    ForRows<kD, kThreads>(p, ptx::ThreadX(), token, 0, chunk, [&](uint32_t to, size_t from, uint32_t bytes) {
      ptx::CpAsyncFill<16>(ptx::DynamicShared<uint16_t>(stage + to), a + from, bytes);
      ptx::CpAsyncFill<16>(ptx::DynamicShared<uint16_t>(stage + to + kTile), v + from, bytes);
    });
    ptx::CpCommit();
  }

  // a := a without its part along v, rounded to bf16.
  IHA_DEVICE void TakeOutValues(uint32_t chunk) const {
    constexpr uint32_t kLanes = kD / 8;
    for (uint32_t row = ptx::ThreadX() / kLanes; row < kRows; row += kThreads / kLanes) {
      const auto at = ptx::DynamicShared<uint16_t>(At(chunk) + TileChunk<kD>(row, ptx::ThreadX() % kLanes));
      float z[8], v[8];
      Widen(ptx::LoadAs<Eight16>(at), z);
      Widen(ptx::LoadAs<Eight16>(at + kTile / 2), v);
      TakeOutValue<kLanes>(v, z);
      ptx::StoreAs(at, Narrow(z));
    }
  }
};

// A block: 16 tokens, one at a time; all columns, a quarter of them a warp; kHeadTiles * 16 heads.
template <uint32_t kHeadTiles, uint32_t kD>
IHA_KERNEL void IHA_LAUNCH_BOUNDS(kThreads, 1) CollapseGlobalXsa(IhaCollapseGlobalGpuArgs p) {
  const uint32_t lane = ptx::Lane(), chunks = ChunksOf(p), first_chunk = ptx::WarpIndex() * (kD / 32);
  const uint32_t first_head = ptx::BlockZ() * kHeadTiles * 16;
  LoadCollapse(p, first_head, kHeadTiles * 16);
  const Stages<kD> stages{kHeadTiles * 16 * CollapseStride(p)};
  for (uint32_t i = 0; i < kCollapseGpuTokens; ++i) {
    const uint32_t token = ptx::BlockX() * kCollapseGpuTokens + i;
    if (token >= p.tokens) break;
    float c[kHeadTiles][kD / 32][4] = {};
    stages.Load(p, token, 0);
    for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
      ptx::CpWait<0>();
      ptx::SyncThreads();  // the chunk is here, and nobody reads the other stage any more
      if (chunk + 1 < chunks) stages.Load(p, token, chunk + 1);
      stages.TakeOutValues(chunk);
      ptx::SyncThreads();
      IHA_UNROLL
      for (uint32_t k = 0; k < kRows / 16; ++k) {
        uint32_t b[kD / 32][2];
        IHA_UNROLL
        for (uint32_t n = 0; n < kD / 32; ++n) {
          const uint32_t at = stages.At(chunk) + TileChunk<kD>(k * 16 + lane % 16, first_chunk + n);
          ptx::LdMatrix<2, true>(b[n], ptx::DynamicShared<uint16_t>(at));
        }
        for (uint32_t term = 0; term < p.terms; ++term) AddTerm(p, term, chunk, k, b, c);
      }
    }
    ptx::SyncThreads();
    IHA_UNROLL
    for (uint32_t tile = 0; tile < kHeadTiles; ++tile) {
      StageSums<kD>(stages.At(0), tile * 16, first_chunk, c[tile]);
    }
    ptx::SyncThreads();
    WriteHeads<kD, kThreads>(p, ptx::ThreadX(), stages.At(0), token, 0, first_head, kHeadTiles * 16);
    ptx::SyncThreads();  // before the stage is filled again
  }
}

}  // namespace

template <uint32_t kHeadTiles, uint32_t kD>
GpuStatus LaunchCollapseGlobalXsa(const IhaCollapseGlobalGpuArgs& args, GpuStream stream) {
  const CollapseGpuLayout layout = CollapseGpuLayoutFor(args.heads, args.pseudo, args.terms);
  const LaunchShape shape{(args.tokens + kCollapseGpuTokens - 1) / kCollapseGpuTokens, 1, layout.rows / 16 / kHeadTiles,
                          kThreads, CollapseGpuSharedBytes(layout, kHeadTiles, kD)};
  return LaunchKernel("iha_collapse_global_xsa", CollapseGlobalXsa<kHeadTiles, kD>, shape, stream, args);
}

}  // namespace iha::kernels
