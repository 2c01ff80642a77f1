#include "kernels/talking_heads/talking_heads_gpu.h"

namespace iha::kernels {
namespace {

bool Fits(const TalkingHeadsGpuArgs& args) {
  const AttentionGpuArgs& a = args.attention;
  if (a.heads == 0 || a.heads > kTalkingGpuMaxHeads || a.kv_heads == 0 || a.heads % a.kv_heads != 0) return false;
  if (a.d != a.d_v || (a.d != 64 && a.d != 128 && a.d != 256)) return false;
  if (a.mask.pseudo != 1 || a.lse != nullptr || a.split_keys != 0) return false;
  if (args.block_rows == 0) return a.max_rows == 0;
  return args.block_rows % 64 == 0 || (args.block_rows < 64 && a.max_rows <= args.block_rows);
}

using Launcher = GpuStatus (*)(const TalkingHeadsGpuArgs&, GpuStream);

Launcher Mixes(uint32_t heads) {
  return heads <= 8    ? LaunchTalkingMixes<8>
         : heads <= 16 ? LaunchTalkingMixes<16>
         : heads <= 32 ? LaunchTalkingMixes<32>
                       : LaunchTalkingMixes<64>;
}

template <uint32_t kD>
GpuStatus LaunchBlocks(TalkingHeadsGpuArgs args, GpuStream stream) {
  const Launcher parts[] = {LaunchTalkingScores<kD>, Mixes(args.attention.heads), LaunchTalkingValues<kD>};
  for (; args.first_row < args.attention.max_rows; args.first_row += args.block_rows) {
    for (const Launcher part : parts) {
      if (const GpuStatus status = part(args, stream); status != 0) return status;
    }
  }
  return 0;
}

}  // namespace

GpuStatus TalkingHeadsGpu(const TalkingHeadsGpuArgs& args, GpuStream stream) {
  if (!Fits(args)) return 1;
  if (args.attention.sequences == 0 || args.attention.max_keys == 0) return 0;
  return args.attention.d == 64    ? LaunchBlocks<64>(args, stream)
         : args.attention.d == 128 ? LaunchBlocks<128>(args, stream)
                                   : LaunchBlocks<256>(args, stream);
}

}  // namespace iha::kernels
