#include "kernels/attention/attention_gpu.h"

namespace iha::kernels {

GpuStatus AttentionGpu(const AttentionGpuArgs& args, GpuStream stream) {
  if (args.heads == 0 || args.kv_heads == 0 || args.heads % args.kv_heads != 0 || args.mask.pseudo == 0) return 1;
  if (args.split_keys % kGpuKeyBlock != 0 || (args.d != args.d_v && args.kv_heads % 2 != 0)) return 1;
  if (args.sequences == 0 || args.max_rows == 0) return 0;
  if (args.d == 64 && args.d_v == 64) return AttentionGpu64x64(args, stream);
  if (args.d == 128 && args.d_v == 128) return AttentionGpu128x128(args, stream);
  if (args.d == 64 && args.d_v == 128) return AttentionGpu64x128(args, stream);
  if (args.d == 128 && args.d_v == 256) return AttentionGpu128x256(args, stream);
  if (args.d == 256 && args.d_v == 256) return AttentionGpu256x256(args, stream);
  return 1;
}

}  // namespace iha::kernels
