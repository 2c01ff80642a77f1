#include "kernels/attention/attention_gpu.h"

namespace iha::kernels {
namespace {

// What each kernel serves: the first that does is launched. A kernel of other instructions (wgmma and TMA of sm_90a) is
// a line above those of mma.sync that it replaces, with what else it asks of a call.
struct Served {
  uint32_t d, d_v;
  GpuStatus (*launch)(const AttentionGpuArgs&, GpuStream);
};
constexpr Served kServed[] = {{64, 64, AttentionGpu64x64},
                              {64, 128, AttentionGpu64x128},
                              {128, 128, AttentionGpu128x128},
                              {128, 256, AttentionGpu128x256},
                              {256, 256, AttentionGpu256x256}};

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
