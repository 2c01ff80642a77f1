#include "kernels/rmsnorm/rmsnorm_gpu.h"
#include "kernels/simt/device_math.h"
#include "kernels/simt/launch.h"

namespace iha::kernels {
namespace {

// The thread's share of a row: packs `thread`, `thread` + threads, ..
struct Share {
  float x[kRmsNormPacks][8];
};

IHA_DEVICE float LoadShare(const RmsNormGpuArgs& p, uint32_t row, uint32_t thread, uint32_t threads, Share& share) {
  const ptx::Global<const uint16_t> x(p.x);
  float sum = 0.0f;
  for (uint32_t i = 0; i < kRmsNormPacks; ++i) {
    const uint32_t at = (thread + i * threads) * 8;
    if (at >= p.n) break;
    Widen(ptx::LoadAs<Eight16>(x + (size_t{row} * p.ldx + at)), share.x[i]);
    for (float v : share.x[i]) sum = fmaf(v, v, sum);
  }
  return sum;
}

IHA_DEVICE void StoreShare(const RmsNormGpuArgs& p, uint32_t row, uint32_t thread, uint32_t threads, float sum,
                           Share& share) {
  const ptx::Global<const uint16_t> weight(p.weight);
  const ptx::Global<uint16_t> y(p.y);
  const float r = ptx::Rsqrt(sum / static_cast<float>(p.mean_of == 0 ? p.n : p.mean_of) + p.eps);
  for (uint32_t i = 0; i < kRmsNormPacks; ++i) {
    const uint32_t at = (thread + i * threads) * 8;
    if (at >= p.n) break;
    float g[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    if (p.weight != nullptr) Widen(ptx::LoadAs<Eight16>(weight + at), g);
    const float plus = p.weight != nullptr && p.weight_plus_one ? 1.0f : 0.0f;
    for (int j = 0; j < 8; ++j) share.x[i][j] = share.x[i][j] * r * (g[j] + plus);
    ptx::StoreAs(y + (size_t{row} * p.ldy + at), Narrow(share.x[i]));
  }
}

// A warp a row, for short rows.
IHA_KERNEL void IHA_LAUNCH_BOUNDS(128, 1) RmsNormWarps(RmsNormGpuArgs p) {
  const uint32_t row = ptx::BlockX() * (ptx::BlockDimX() / 32) + ptx::WarpIndex();
  if (row >= p.rows) return;
  Share share;
  const float sum = SumLanes(LoadShare(p, row, ptx::Lane(), 32, share));
  StoreShare(p, row, ptx::Lane(), 32, sum, share);
}

// A block a row.
IHA_KERNEL void IHA_LAUNCH_BOUNDS(1024, 1) RmsNormBlock(RmsNormGpuArgs p) {
  const uint32_t threads = ptx::BlockDimX();
  const auto partials = ptx::DynamicShared<float>();
  Share share;
  const float mine = SumLanes(LoadShare(p, ptx::BlockX(), ptx::ThreadX(), threads, share));
  if (ptx::Lane() == 0) ptx::Store(partials + ptx::WarpIndex(), mine);
  ptx::SyncThreads();
  float sum = 0.0f;
  for (uint32_t w = 0; w < threads / 32; ++w) sum += ptx::Load(partials + w);
  StoreShare(p, ptx::BlockX(), ptx::ThreadX(), threads, sum, share);
}

}  // namespace

GpuStatus RmsNormGpu(const RmsNormGpuArgs& args, GpuStream stream) {
  if (args.n == 0 || args.n % 8 != 0 || args.n > kMaxRmsNormGpu || args.ldx % 8 != 0 || args.ldy % 8 != 0) return 1;
  if (args.rows == 0) return 0;
  const RmsNormTile tile = RmsNormTileFor(args.n);
  if (tile.threads == 32) {
    const LaunchShape shape{(args.rows + tile.rows - 1) / tile.rows, 1, 1, 32 * tile.rows, 0};
    return LaunchKernel("rmsnorm", RmsNormWarps, shape, stream, args);
  }
  return LaunchKernel("rmsnorm", RmsNormBlock, {args.rows, 1, 1, tile.threads, tile.threads / 32 * sizeof(float)},
                      stream, args);
}

}  // namespace iha::kernels
