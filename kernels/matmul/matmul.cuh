// matmul.cuh: the kernel behind matmul_gpu.h.
#pragma once

#include "kernels/matmul/matmul_gpu.h"
#include "kernels/simt/device_math.h"
#include "kernels/simt/launch.h"

namespace iha::kernels {
namespace {

constexpr uint32_t kRowBytes = kMatmulGpuK * 2;

// Rows first .. first + kRows - 1 of a matrix, k0 .. k0 + 63, to shared memory at byte `to`; zeros outside of it.
template <uint32_t kRows, uint32_t kThreads>
IHA_DEVICE void LoadStage(uint32_t to, ptx::Global<const uint16_t> from, uint32_t ld, uint32_t first, uint32_t rows,
                          uint32_t k0, uint32_t k) {
  for (uint32_t i = ptx::ThreadX(); i < kRows * 8; i += kThreads) {
    const uint32_t row = i / 8, chunk = i % 8;
    const bool in = first + row < rows && k0 + chunk * 8 < k;
    ptx::CpAsyncFill<16>(ptx::DynamicShared<uint16_t>(to + TileChunk<kMatmulGpuK>(row, chunk)),
                         in ? from + (size_t{first + row} * ld + k0 + chunk * 8) : from, in ? 16 : 0);
  }
}

// c += the product of a stage at byte `at`: a warp's 16 kM rows of x, and 16 kN of w, which lie behind those.
template <uint32_t kM, uint32_t kN>
IHA_DEVICE void AddStage(uint32_t at, uint32_t first_row, uint32_t first_column, float (&c)[kM][2 * kN][4]) {
  const uint32_t lane = ptx::Lane();
  IHA_UNROLL
  for (uint32_t k = 0; k < kMatmulGpuK / 16; ++k) {
    uint32_t a[kM][4];
    IHA_UNROLL
    for (uint32_t i = 0; i < kM; ++i) {
      const uint32_t row = first_row + i * 16 + lane % 16;
      ptx::LdMatrix<4, false>(a[i], ptx::DynamicShared<uint16_t>(at + TileChunk<kMatmulGpuK>(row, k * 2 + lane / 16)));
    }
    IHA_UNROLL
    for (uint32_t j = 0; j < kN; ++j) {
      uint32_t b[4];
      const uint32_t row = first_column + j * 16 + lane % 8 + lane / 16 * 8;
      ptx::LdMatrix<4, false>(b, ptx::DynamicShared<uint16_t>(at + TileChunk<kMatmulGpuK>(row, k * 2 + lane / 8 % 2)));
      const uint32_t left[2] = {b[0], b[1]}, right[2] = {b[2], b[3]};
      IHA_UNROLL
      for (uint32_t i = 0; i < kM; ++i) {
        ptx::MmaBF16(c[i][2 * j], a[i], left);
        ptx::MmaBF16(c[i][2 * j + 1], a[i], right);
      }
    }
  }
}

// A warp's sums to y or y_float, as far as the matrix goes.
template <uint32_t kM, uint32_t kN>
IHA_DEVICE void StoreTile(const MatmulGpuArgs& p, uint32_t first_row, uint32_t first_column,
                          const float (&c)[kM][2 * kN][4]) {
  const uint32_t lane = ptx::Lane();
  const ptx::Global<uint16_t> y(p.y);
  const ptx::Global<float> y_float(p.y_float);
  IHA_UNROLL
  for (uint32_t i = 0; i < kM; ++i) {
    IHA_UNROLL
    for (uint32_t j = 0; j < 2 * kN; ++j) {
      IHA_UNROLL
      for (uint32_t part = 0; part < 2; ++part) {
        const uint32_t row = first_row + i * 16 + lane / 4 + part * 8;
        const uint32_t column = first_column + j * 8 + lane % 4 * 2;
        if (row >= p.m || column >= p.n) continue;
        const float low = c[i][j][2 * part], high = c[i][j][2 * part + 1];
        const size_t to = size_t{row} * p.ldy + column;
        if (p.y != nullptr) {
          ptx::StoreAs(y + to, ptx::PackBF16(low, high));
        } else {
          ptx::StoreAs(y_float + to, ptx::Pack<float, 2>{{low, high}});
        }
      }
    }
  }
}

// A block's tile: kRowWarps x kColumnWarps warps, each 16 kM rows and 16 kN columns.
template <uint32_t kRowWarps, uint32_t kColumnWarps, uint32_t kM, uint32_t kN>
IHA_KERNEL void IHA_LAUNCH_BOUNDS(kRowWarps* kColumnWarps * 32, 1) MatmulTile(MatmulGpuArgs p) {
  constexpr uint32_t kThreads = kRowWarps * kColumnWarps * 32, kStages = kMatmulGpuStages;
  constexpr uint32_t kRows = kRowWarps * kM * 16, kColumns = kColumnWarps * kN * 16;
  constexpr uint32_t kStageBytes = (kRows + kColumns) * kRowBytes;
  const ptx::Global<const uint16_t> x(p.x), w(p.w);
  // Blocks next to each other share columns: their weights come from the second-level cache.
  const uint32_t row0 = ptx::BlockX() * kRows, column0 = ptx::BlockY() * kColumns;
  const uint32_t tiles = (p.k + kMatmulGpuK - 1) / kMatmulGpuK;
  const uint32_t warp_row = ptx::WarpIndex() / kColumnWarps * kM * 16,
                 warp_column = ptx::WarpIndex() % kColumnWarps * kN * 16;

  const auto load = [&](uint32_t tile) {
    if (tile < tiles) {
      const uint32_t to = tile % kStages * kStageBytes;
      LoadStage<kRows, kThreads>(to, x, p.ldx, row0, p.m, tile * kMatmulGpuK, p.k);
      LoadStage<kColumns, kThreads>(to + kRows * kRowBytes, w, p.ldw, column0, p.n, tile * kMatmulGpuK, p.k);
    }
    ptx::CpCommit();  // empty past the end: the count of groups stays the same
  };
  for (uint32_t tile = 0; tile + 1 < kStages; ++tile) load(tile);

  float c[kM][2 * kN][4] = {};
  for (uint32_t tile = 0; tile < tiles; ++tile) {
    ptx::CpWait<kStages - 2>();
    ptx::SyncThreads();  // the tile is here for all, and all are done with the one before
    load(tile + kStages - 1);
    const uint32_t at = tile % kStages * kStageBytes;
    AddStage<kM, kN>(at, warp_row, kRows + warp_column, c);
  }
  ptx::CpWait<0>();
  StoreTile<kM, kN>(p, row0 + warp_row, column0 + warp_column, c);
}

}  // namespace

template <uint32_t kRowWarps, uint32_t kColumnWarps, uint32_t kM, uint32_t kN>
GpuStatus LaunchMatmul(const MatmulGpuArgs& args, GpuStream stream) {
  constexpr MatmulGpuTile kTile{kRowWarps * kM * 16, kColumnWarps * kN * 16, kRowWarps * kColumnWarps};
  const LaunchShape shape{(args.m + kTile.rows - 1) / kTile.rows, (args.n + kTile.columns - 1) / kTile.columns, 1,
                          kTile.warps * 32, kTile.shared_bytes()};
  return LaunchKernel("matmul", MatmulTile<kRowWarps, kColumnWarps, kM, kN>, shape, stream, args);
}

}  // namespace iha::kernels
