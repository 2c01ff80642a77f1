#include "kernels/attention/attention_gpu.h"

namespace iha::kernels {
namespace {

template <uint32_t kD, uint32_t kDv>
GpuStatus Launch(const AttentionGpuArgs& args, GpuStream stream) {
  const bool few = AttentionGpuWarps(args.max_rows) == 1;
  if (args.split_keys == 0 || args.max_rows > kGpuSplitRows) {
    return few ? LaunchFlash<kD, kDv, 1, false>(args, stream) : LaunchFlash<kD, kDv, 4, false>(args, stream);
  }
  const GpuStatus status =
      few ? LaunchFlash<kD, kDv, 1, true>(args, stream) : LaunchFlash<kD, kDv, 4, true>(args, stream);
  return status != 0 ? status : LaunchFlashMerge<kDv>(args, stream);
}

// What each kernel serves: the first that does is launched. A kernel of other instructions (wgmma and TMA of sm_90a) is
// a line above those of mma.sync that it replaces, with what else it asks of a call.
struct Served {
  uint32_t d, d_v;
  GpuStatus (*launch)(const AttentionGpuArgs&, GpuStream);
};
constexpr Served kServed[] = {{64, 64, Launch<64, 64>},
                              {64, 128, Launch<64, 128>},
                              {128, 128, Launch<128, 128>},
                              {128, 256, Launch<128, 256>},
                              {256, 256, Launch<256, 256>}};

}  // namespace

GpuStatus AttentionGpu(const AttentionGpuArgs& args, GpuStream stream) {
  if (args.heads == 0 || args.kv_heads == 0 || args.heads % args.kv_heads != 0 || args.mask.pseudo == 0) return 1;
  if (args.split_keys % kGpuKeyBlock != 0 || (args.d != args.d_v && args.kv_heads % 2 != 0)) return 1;
  if (args.sequences == 0 || args.max_rows == 0) return 0;
  for (const Served& kernel : kServed) {
    if (args.d == kernel.d && args.d_v == kernel.d_v) return kernel.launch(args, stream);
  }
  return 1;
}

}  // namespace iha::kernels
