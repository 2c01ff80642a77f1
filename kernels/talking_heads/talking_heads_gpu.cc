#include "kernels/talking_heads/talking_heads_gpu.h"

#include <initializer_list>

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

}  // namespace

GpuStatus TalkingHeadsGpu(const TalkingHeadsGpuArgs& args, GpuStream stream) {
  if (!Fits(args)) return 1;
  if (args.attention.sequences == 0 || args.attention.max_keys == 0) return 0;
  const TalkingHeadsGpuParts parts = args.attention.d == 64    ? TalkingHeadsGpu64()
                                     : args.attention.d == 128 ? TalkingHeadsGpu128()
                                                               : TalkingHeadsGpu256();
  TalkingHeadsGpuArgs block = args;
  for (; block.first_row < args.attention.max_rows; block.first_row += args.block_rows) {
    for (const auto part : {parts.scores, TalkingMixesGpu, parts.values}) {
      if (const GpuStatus status = part(block, stream); status != 0) return status;
    }
  }
  return 0;
}

}  // namespace iha::kernels
