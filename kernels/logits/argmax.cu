#include "kernels/logits/argmax_gpu.h"
#include "kernels/simt/launch.h"
#include "kernels/simt/ptx.h"

namespace iha::kernels {
namespace {

constexpr int32_t kNone = 0x7FFFFFFF;  // later than every index

struct Best {
  float value = -INFINITY;
  int32_t index = kNone;
  bool nan = false;
};

IHA_DEVICE void Take(Best& best, float value, int32_t index, bool nan) {
  best.nan = best.nan || nan;
  if (value > best.value || (value == best.value && index < best.index)) {
    best.value = value;
    best.index = index;
  }
}

IHA_DEVICE Best BestOfWarp(Best best) {
  for (uint32_t step = 16; step > 0; step /= 2) {
    const float value = ptx::ShflXor(ptx::kAllLanes, best.value, step);
    const int32_t index = ptx::ShflXor(ptx::kAllLanes, best.index, step);
    Take(best, value, index, false);
  }
  best.nan = ptx::Any(ptx::kAllLanes, best.nan);
  return best;
}

// A block a row; shared memory: value, index and whether there was a NaN, of each warp.
IHA_KERNEL void IHA_LAUNCH_BOUNDS(kArgmaxGpuThreads, 1) ArgmaxRows(ArgmaxGpuArgs p) {
  const ptx::Global<const float> logits(p.logits);
  const size_t row = size_t{ptx::BlockX()} * p.ld;
  Best best;
  for (uint32_t i = ptx::ThreadX(); i < p.n; i += kArgmaxGpuThreads) {
    const float value = ptx::Load(logits + (row + i));
    Take(best, value, static_cast<int32_t>(i), value != value);
  }
  best = BestOfWarp(best);
  constexpr uint32_t kWarps = kArgmaxGpuThreads / 32;
  const auto values = ptx::DynamicShared<float>();
  const auto indices = ptx::DynamicShared<int32_t>(kWarps * 4);
  if (ptx::Lane() == 0) {
    ptx::Store(values + ptx::WarpIndex(), best.value);
    ptx::Store(indices + ptx::WarpIndex(), best.nan ? -1 : best.index);
  }
  ptx::SyncThreads();
  if (ptx::ThreadX() != 0) return;
  Best all;
  for (uint32_t warp = 0; warp < kWarps; ++warp) {
    const int32_t index = ptx::Load(indices + warp);
    Take(all, ptx::Load(values + warp), index, index == -1);
  }
  ptx::Store(ptx::Global<int32_t>(p.tokens) + ptx::BlockX(), all.nan ? -1 : all.index);
}

}  // namespace

GpuStatus ArgmaxGpu(const ArgmaxGpuArgs& args, GpuStream stream) {
  if (args.n == 0) return 1;
  if (args.rows == 0) return 0;
  return LaunchKernel("argmax", ArgmaxRows, {args.rows, 1, 1, kArgmaxGpuThreads, kArgmaxGpuThreads / 32 * 8}, stream,
                      args);
}

}  // namespace iha::kernels
