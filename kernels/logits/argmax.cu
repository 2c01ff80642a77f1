#include "kernels/logits/argmax_gpu.h"
#include "kernels/logits/best.cuh"
#include "kernels/simt/launch.h"
#include "kernels/simt/ptx.h"

namespace iha::kernels {
namespace {

// A block a row; shared memory: value, index and whether there was a NaN, of each warp.
IHA_KERNEL void IHA_LAUNCH_BOUNDS(kArgmaxGpuThreads, 1) ArgmaxRows(ArgmaxGpuArgs p) {
  const ptx::Global<const float> logits(p.logits);
  const size_t row = size_t{ptx::BlockX()} * p.ld;
  Best best;
  for (uint32_t i = ptx::ThreadX(); i < p.n; i += kArgmaxGpuThreads) {
    const float value = ptx::Load(logits + (row + i));
    Take(best, value, static_cast<int32_t>(i), value != value);
  }
  const Best all = BestOfBlock<kArgmaxGpuThreads / 32>(best, 0);
  if (ptx::ThreadX() != 0) return;
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
