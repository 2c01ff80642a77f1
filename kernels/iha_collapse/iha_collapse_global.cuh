// iha_collapse_global.cuh: what both global collapses (iha_collapse_gpu.h) do with R, rows and sums. Their kernels:
// iha_collapse_plain.cuh, iha_collapse_xsa.cuh, an instantiation a file (kernels/CMakeLists.txt).
#pragma once

#include "kernels/iha_collapse/iha_collapse_gpu.h"
#include "kernels/simt/device_math.h"
#include "kernels/simt/launch.h"

namespace iha::kernels {
namespace {

constexpr uint32_t kRows = 32;  // of a (and v), in one stage
constexpr uint32_t kThreads = kCollapseGpuWarps * 32;

// Chunks of 32 rows of the sum, and bytes between rows of R in shared memory: 16 between them.
IHA_DEVICE uint32_t ChunksOf(const IhaCollapseGlobalGpuArgs& p) { return (p.heads * p.pseudo + kRows - 1) / kRows; }
IHA_DEVICE uint32_t CollapseStride(const IhaCollapseGlobalGpuArgs& p) { return ChunksOf(p) * kRows * p.terms * 2 + 16; }

// R of `heads` heads from first_head on, to the beginning of shared memory; by all threads.
IHA_DEVICE void LoadCollapse(const IhaCollapseGlobalGpuArgs& p, uint32_t first_head, uint32_t heads) {
  const ptx::Global<const uint16_t> collapse(p.collapse);
  const uint32_t stride = CollapseStride(p), row_chunks = (stride - 16) / 16;
  for (uint32_t i = ptx::ThreadX(); i < heads * row_chunks; i += kThreads) {
    ptx::CpAsync<16>(ptx::DynamicShared<uint16_t>(i / row_chunks * stride + i % row_chunks * 16),
                     collapse + (size_t{first_head} * row_chunks + i) * 8);
  }
  ptx::CpCommit();
}

// The A operand of the mma: 16 heads of R by 16 rows of the sum, of one term.
IHA_DEVICE void CollapseOperand(const IhaCollapseGlobalGpuArgs& p, uint32_t tile, uint32_t term, uint32_t chunk,
                                uint32_t k, uint32_t (&a)[4]) {
  const uint32_t column = (term * ChunksOf(p) + chunk) * kRows + k * 16 + ptx::Lane() / 16 * 8;
  const uint32_t at = (tile * 16 + ptx::Lane() % 16) * CollapseStride(p) + column * 2;
  ptx::LdMatrix<4, false>(a, ptx::DynamicShared<uint16_t>(at));
}

// The B operand's values without infinities, for the low parts of R: once the high parts are done.
template <uint32_t kTiles>
IHA_DEVICE void DropInfinities(uint32_t (&b)[kTiles][2]) {
  IHA_UNROLL
  for (uint32_t n = 0; n < kTiles; ++n) {
    for (uint32_t& pair : b[n]) pair = WithoutInfinities(pair);
  }
}

// c += a term of R times b, 16 rows of the sum in as many tiles of 8 columns as c has.
template <uint32_t kHeadTiles, uint32_t kTiles>
IHA_DEVICE void AddTerm(const IhaCollapseGlobalGpuArgs& p, uint32_t term, uint32_t chunk, uint32_t k,
                        uint32_t (&b)[kTiles][2], float (&c)[kHeadTiles][kTiles][4]) {
  if (term == 1) DropInfinities(b);
  IHA_UNROLL
  for (uint32_t tile = 0; tile < kHeadTiles; ++tile) {
    uint32_t a[4];
    CollapseOperand(p, tile, term, chunk, k, a);
    IHA_UNROLL
    for (uint32_t n = 0; n < kTiles; ++n) ptx::MmaBF16(c[tile][n], a, b[n]);
  }
}

// copy(byte of a tile of kColumns columns, element of a or v, bytes) for each 16 bytes of rows chunk * 32 .. of a
// token, shared among kWorkers threads of which this is `worker`; 0 bytes past the last row. Row r = (i, j) of the sum
// lies at virtual token t P + j, head i.
template <uint32_t kColumns, uint32_t kWorkers, class Copy>
IHA_DEVICE void ForRows(const IhaCollapseGlobalGpuArgs& p, uint32_t worker, uint32_t token, uint32_t first_column,
                        uint32_t chunk, Copy copy) {
  constexpr uint32_t kChunks = kColumns / 8;
  for (uint32_t i = worker; i < kRows * kChunks; i += kWorkers) {
    const uint32_t row = i / kChunks, r = chunk * kRows + row;
    const bool in = r < p.heads * p.pseudo;
    const size_t at =
        ((size_t{token} * p.pseudo + r % p.pseudo) * p.heads + r / p.pseudo) * p.d + first_column + i % kChunks * 8;
    copy(TileChunk<kColumns>(row, i % kChunks), in ? at : 0, in ? 16 : 0);
  }
}

// Sums of 16 heads and kTiles tiles of 8 columns, in bf16 to rows first_row .. of a tile at byte `stage`.
template <uint32_t kColumns, uint32_t kTiles>
IHA_DEVICE void StageSums(uint32_t stage, uint32_t first_row, uint32_t first_chunk, const float (&c)[kTiles][4]) {
  const uint32_t lane = ptx::Lane();
  IHA_UNROLL
  for (uint32_t n = 0; n < kTiles; ++n) {
    IHA_UNROLL
    for (uint32_t part = 0; part < 2; ++part) {
      const uint32_t row = first_row + lane / 4 + part * 8;
      ptx::Store(ptx::DynamicShared<uint32_t>(stage + TileChunk<kColumns>(row, first_chunk + n) + lane % 4 * 4),
                 ptx::PackBF16(c[n][2 * part], c[n][2 * part + 1]));
    }
  }
}

// Staged rows out: kHeads heads from first_head on, those that the model has.
template <uint32_t kColumns, uint32_t kWorkers>
IHA_DEVICE void WriteHeads(const IhaCollapseGlobalGpuArgs& p, uint32_t worker, uint32_t stage, uint32_t token,
                           uint32_t first_column, uint32_t first_head, uint32_t heads) {
  const ptx::Global<uint16_t> out(p.out);
  constexpr uint32_t kChunks = kColumns / 8;
  for (uint32_t i = worker; i < heads * kChunks; i += kWorkers) {
    const uint32_t row = i / kChunks, head = first_head + row;
    if (head >= p.heads) break;
    ptx::StoreAs(out + ((size_t{token} * p.heads + head) * p.d + first_column + i % kChunks * 8),
                 ptx::LoadAs<Eight16>(ptx::DynamicShared<uint16_t>(stage + TileChunk<kColumns>(row, i % kChunks))));
  }
}

}  // namespace
}  // namespace iha::kernels
