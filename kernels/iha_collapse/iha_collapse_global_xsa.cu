#include "kernels/epilogue/row_ops.cuh"
#include "kernels/iha_collapse/iha_collapse_gpu.h"
#include "kernels/simt/launch.h"

namespace iha::kernels {
namespace {

constexpr uint32_t kRows = 32;  // of a and of v, in one stage
constexpr uint32_t kThreads = kCollapseGpuWarps * 32;

// Shared memory: R, then two stages of rows of a and of v behind each other. The output is staged in the first one.
template <uint32_t kD>
struct Stages {
  static constexpr uint32_t kTile = kRows * kD * 2;

  uint32_t begin;
  [[nodiscard]] IHA_DEVICE uint32_t At(uint32_t chunk) const { return begin + chunk % 2 * 2 * kTile; }

  // Rows chunk * 32 .. of a token; zeros past the last. Row r = (i, j) of the sum lies at virtual token t P + j, head
  // i.
  IHA_DEVICE void Load(const IhaCollapseGlobalGpuArgs& p, uint32_t token, uint32_t chunk) const {
    const ptx::Global<const uint16_t> a(p.a), v(p.v);
    constexpr uint32_t kChunks = kD / 8;
    for (uint32_t i = ptx::ThreadX(); i < kRows * kChunks; i += kThreads) {
      const uint32_t row = i / kChunks, r = chunk * kRows + row;
      const uint32_t to = At(chunk) + TileChunk<kD>(row, i % kChunks), bytes = r < p.heads * p.pseudo ? 16 : 0;
      const size_t from =
          bytes == 0 ? 0 : ((size_t{token} * p.pseudo + r % p.pseudo) * p.heads + r / p.pseudo) * kD + i % kChunks * 8;
      ptx::CpAsyncFill<16>(ptx::DynamicShared<uint16_t>(to), a + from, bytes);
      ptx::CpAsyncFill<16>(ptx::DynamicShared<uint16_t>(to + kTile), v + from, bytes);
    }
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

// R with 16 bytes between rows.
IHA_DEVICE void LoadCollapse(const IhaCollapseGlobalGpuArgs& p, uint32_t rows, uint32_t stride) {
  const ptx::Global<const uint16_t> collapse(p.collapse);
  const uint32_t row_chunks = (stride - 16) / 16;
  for (uint32_t i = ptx::ThreadX(); i < rows * row_chunks; i += kThreads) {
    ptx::CpAsync<16>(ptx::DynamicShared<uint16_t>(i / row_chunks * stride + i % row_chunks * 16),
                     collapse + size_t{i} * 8);
  }
  ptx::CpCommit();
}

// All heads of the token, from the sums of the warps (a quarter of the columns each).
template <uint32_t kHeadTiles, uint32_t kD>
IHA_DEVICE void WriteToken(const IhaCollapseGlobalGpuArgs& p, uint32_t stage, uint32_t token,
                           const float (&c)[kHeadTiles][kD / 32][4]) {
  const uint32_t lane = ptx::Lane();
  IHA_UNROLL
  for (uint32_t tile = 0; tile < kHeadTiles; ++tile) {
    IHA_UNROLL
    for (uint32_t n = 0; n < kD / 32; ++n) {
      IHA_UNROLL
      for (uint32_t part = 0; part < 2; ++part) {
        const uint32_t row = tile * 16 + lane / 4 + part * 8, chunk = ptx::WarpIndex() * (kD / 32) + n;
        ptx::Store(ptx::DynamicShared<uint32_t>(stage + TileChunk<kD>(row, chunk) + lane % 4 * 4),
                   ptx::PackBF16(c[tile][n][2 * part], c[tile][n][2 * part + 1]));
      }
    }
  }
  ptx::SyncThreads();
  const ptx::Global<uint16_t> out(p.out);
  constexpr uint32_t kChunks = kD / 8;
  for (uint32_t i = ptx::ThreadX(); i < p.heads * kChunks; i += kThreads) {
    ptx::StoreAs(out + ((size_t{token} * p.heads + i / kChunks) * kD + i % kChunks * 8),
                 ptx::LoadAs<Eight16>(ptx::DynamicShared<uint16_t>(stage + TileChunk<kD>(i / kChunks, i % kChunks))));
  }
  ptx::SyncThreads();  // before the stage is filled again
}

template <uint32_t kHeadTiles, uint32_t kD>
IHA_KERNEL void IHA_LAUNCH_BOUNDS(kThreads, 1) CollapseGlobalXsa(IhaCollapseGlobalGpuArgs p) {
  const uint32_t lane = ptx::Lane(), chunks = (p.heads * p.pseudo + kRows - 1) / kRows;
  const uint32_t stride = chunks * kRows * p.terms * 2 + 16, first_chunk = ptx::WarpIndex() * (kD / 32);
  LoadCollapse(p, kHeadTiles * 16, stride);
  const Stages<kD> stages{kHeadTiles * 16 * stride};
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
        for (uint32_t term = 0; term < p.terms; ++term) {
          IHA_UNROLL
          for (uint32_t tile = 0; tile < kHeadTiles; ++tile) {
            uint32_t a[4];
            const uint32_t column = (term * chunks + chunk) * kRows + k * 16 + lane / 16 * 8;
            ptx::LdMatrix<4, false>(a, ptx::DynamicShared<uint16_t>((tile * 16 + lane % 16) * stride + column * 2));
            IHA_UNROLL
            for (uint32_t n = 0; n < kD / 32; ++n) ptx::MmaBF16(c[tile][n], a, b[n]);
          }
        }
      }
    }
    ptx::SyncThreads();
    WriteToken<kHeadTiles, kD>(p, stages.At(0), token, c);
  }
}

}  // namespace

GpuStatus IhaCollapseGlobalXsaGpu(const IhaCollapseGlobalGpuArgs& args, GpuStream stream) {
  const CollapseGpuLayout layout = CollapseGpuLayoutFor(args.heads, args.pseudo, args.terms);
  const LaunchShape shape{(args.tokens + kCollapseGpuTokens - 1) / kCollapseGpuTokens, 1, 1, kThreads,
                          CollapseGpuXsaSharedBytes(layout, args.d)};
  const auto launch = [&](auto kernel) { return LaunchKernel("iha_collapse_global_xsa", kernel, shape, stream, args); };
  const bool few = args.heads <= 16;
  if (args.d == 64) return few ? launch(CollapseGlobalXsa<1, 64>) : launch(CollapseGlobalXsa<2, 64>);
  if (args.d == 128) return few ? launch(CollapseGlobalXsa<1, 128>) : launch(CollapseGlobalXsa<2, 128>);
  if (args.d == 256) return few ? launch(CollapseGlobalXsa<1, 256>) : launch(CollapseGlobalXsa<2, 256>);
  return 1;
}

}  // namespace iha::kernels
