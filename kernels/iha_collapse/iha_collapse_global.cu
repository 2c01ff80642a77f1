#include "kernels/iha_collapse/iha_collapse_gpu.h"
#include "kernels/simt/device_math.h"
#include "kernels/simt/launch.h"

namespace iha::kernels {
namespace {

constexpr uint32_t kColumns = 64;  // of a block
constexpr uint32_t kRows = 32;     // of a, in one stage
constexpr uint32_t kThreads = kCollapseGpuWarps * 32;

// Rows chunk * 32 .. of a token to this warp's stage at byte `to`; zeros past the last. Row r = (i, j) of the sum lies
// at virtual token t P + j, head i.
IHA_DEVICE void LoadRows(const IhaCollapseGlobalGpuArgs& p, uint32_t to, uint32_t token, uint32_t first_column,
                         uint32_t chunk) {
  const ptx::Global<const uint16_t> a(p.a);
  for (uint32_t i = ptx::Lane(); i < kRows * 8; i += 32) {
    const uint32_t row = i / 8, r = chunk * kRows + row;
    const bool in = r < p.heads * p.pseudo;
    const size_t at =
        ((size_t{token} * p.pseudo + r % p.pseudo) * p.heads + r / p.pseudo) * p.d + first_column + i % 8 * 8;
    ptx::CpAsyncFill<16>(ptx::DynamicShared<uint16_t>(to + TileChunk<kColumns>(row, i % 8)), in ? a + at : a,
                         in ? 16 : 0);
  }
  ptx::CpCommit();
}

// 16 heads of sums to bf16, staged and written in chunks of 16 bytes.
IHA_DEVICE void WriteHeads(const IhaCollapseGlobalGpuArgs& p, uint32_t stage, uint32_t token, uint32_t first_column,
                           uint32_t first_head, const float (&c)[8][4]) {
  const uint32_t lane = ptx::Lane();
  IHA_UNROLL
  for (uint32_t n = 0; n < 8; ++n) {
    IHA_UNROLL
    for (uint32_t part = 0; part < 2; ++part) {
      ptx::Store(ptx::DynamicShared<uint32_t>(stage + TileChunk<kColumns>(lane / 4 + part * 8, n) + lane % 4 * 4),
                 ptx::PackBF16(c[n][2 * part], c[n][2 * part + 1]));
    }
  }
  ptx::SyncWarp();
  const ptx::Global<uint16_t> out(p.out);
  for (uint32_t i = lane; i < 16 * 8; i += 32) {
    const uint32_t row = i / 8, head = first_head + row;
    if (head >= p.heads) continue;
    ptx::StoreAs(out + ((size_t{token} * p.heads + head) * p.d + first_column + i % 8 * 8),
                 ptx::LoadAs<Eight16>(ptx::DynamicShared<uint16_t>(stage + TileChunk<kColumns>(row, i % 8))));
  }
  ptx::SyncWarp();
}

template <uint32_t kHeadTiles, uint32_t kTerms>
IHA_KERNEL void IHA_LAUNCH_BOUNDS(kThreads, 1) CollapseGlobal(IhaCollapseGlobalGpuArgs p) {
  const uint32_t lane = ptx::Lane(), chunks = (p.heads * p.pseudo + kRows - 1) / kRows;
  const uint32_t stride = chunks * kRows * kTerms * 2 + 16, first_column = ptx::BlockY() * kColumns;
  const ptx::Global<const uint16_t> collapse(p.collapse);
  const uint32_t row_chunks = chunks * kRows * kTerms / 8;  // 16 bytes each
  for (uint32_t i = ptx::ThreadX(); i < kHeadTiles * 16 * row_chunks; i += kThreads) {
    ptx::CpAsync<16>(ptx::DynamicShared<uint16_t>(i / row_chunks * stride + i % row_chunks * 16),
                     collapse + size_t{i} * 8);
  }
  ptx::CpCommit();
  ptx::CpWait<0>();
  ptx::SyncThreads();

  const uint32_t stages = kHeadTiles * 16 * stride + ptx::WarpIndex() * (2 * kRows + 16) * 128;
  const uint32_t output = stages + 2 * kRows * 128;
  for (uint32_t i = ptx::WarpIndex(); i < kCollapseGpuTokens; i += kCollapseGpuWarps) {
    const uint32_t token = ptx::BlockX() * kCollapseGpuTokens + i;
    if (token >= p.tokens) break;
    float c[kHeadTiles][8][4] = {};
    LoadRows(p, stages, token, first_column, 0);
    for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
      if (chunk + 1 < chunks) {
        LoadRows(p, stages + (chunk + 1) % 2 * kRows * 128, token, first_column, chunk + 1);
        ptx::CpWait<1>();
      } else {
        ptx::CpWait<0>();
      }
      ptx::SyncWarp();
      const uint32_t stage = stages + chunk % 2 * kRows * 128;
      IHA_UNROLL
      for (uint32_t k = 0; k < kRows / 16; ++k) {
        uint32_t b[4][4];
        IHA_UNROLL
        for (uint32_t n = 0; n < 4; ++n) {
          const uint32_t at = stage + TileChunk<kColumns>(k * 16 + lane % 16, n * 2 + lane / 16);
          ptx::LdMatrix<4, true>(b[n], ptx::DynamicShared<uint16_t>(at));
        }
        IHA_UNROLL
        for (uint32_t term = 0; term < kTerms; ++term) {
          IHA_UNROLL
          for (uint32_t tile = 0; tile < kHeadTiles; ++tile) {
            uint32_t a[4];
            const uint32_t column = (term * chunks + chunk) * kRows + k * 16 + lane / 16 * 8;
            ptx::LdMatrix<4, false>(a, ptx::DynamicShared<uint16_t>((tile * 16 + lane % 16) * stride + column * 2));
            IHA_UNROLL
            for (uint32_t n = 0; n < 8; ++n) {
              const uint32_t pair[2] = {b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]};
              ptx::MmaBF16(c[tile][n], a, pair);
            }
          }
        }
      }
      ptx::SyncWarp();  // all lanes are done with the stage that is refilled next
    }
    IHA_UNROLL
    for (uint32_t tile = 0; tile < kHeadTiles; ++tile) WriteHeads(p, output, token, first_column, tile * 16, c[tile]);
  }
}

}  // namespace

GpuStatus IhaCollapseGlobalGpu(const IhaCollapseGlobalGpuArgs& args, GpuStream stream) {
  if (args.heads == 0 || args.heads > 32 || args.pseudo == 0 || args.d == 0 || args.d % kColumns != 0) return 1;
  if (args.terms == 0 || args.terms > 2) return 1;
  if (args.v != nullptr && args.d != 64 && args.d != 128 && args.d != 256) return 1;
  if (args.tokens == 0) return 0;
  if (args.v != nullptr) return IhaCollapseGlobalXsaGpu(args, stream);
  const LaunchShape shape{(args.tokens + kCollapseGpuTokens - 1) / kCollapseGpuTokens, args.d / kColumns, 1, kThreads,
                          CollapseGpuSharedBytes(CollapseGpuLayoutFor(args.heads, args.pseudo, args.terms))};
  const auto launch = [&](auto kernel) { return LaunchKernel("iha_collapse_global", kernel, shape, stream, args); };
  if (args.heads <= 16) return args.terms == 1 ? launch(CollapseGlobal<1, 1>) : launch(CollapseGlobal<1, 2>);
  return args.terms == 1 ? launch(CollapseGlobal<2, 1>) : launch(CollapseGlobal<2, 2>);
}

}  // namespace iha::kernels
