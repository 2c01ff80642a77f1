#include "kernels/iha_mix_rope/iha_mix_rope_gpu.h"

namespace iha::kernels {
namespace {

template <uint32_t kSteps>
GpuStatus Launch(const IhaMixGpuArgs& args, bool norm, GpuStream stream) {
  if (norm) {
    return args.terms == 1 ? LaunchMixRope<kSteps, 1, true>(args, stream)
                           : LaunchMixRope<kSteps, 2, true>(args, stream);
  }
  return args.terms == 1 ? LaunchMixRope<kSteps, 1, false>(args, stream)
                         : LaunchMixRope<kSteps, 2, false>(args, stream);
}

}  // namespace

GpuStatus IhaMixRopeGpu(const IhaMixGpuArgs& args, GpuStream stream) {
  const IhaMixGpuShape& s = args.shape;
  if (s.heads == 0 || s.heads > kMixGpuMaxHeads || s.pseudo == 0 || s.d == 0 || s.d % kMixGpuColumns != 0) return 1;
  if (args.count == 0 || args.count > 3 || args.terms == 0 || args.terms > 2) return 1;
  bool norm = false;
  for (uint32_t i = 0; i < args.count; ++i) norm = norm || args.parts[i].norm != nullptr;
  for (uint32_t i = 0; i < args.count; ++i) {
    if (args.parts[i].token_stride % 8 != 0) return 1;
    if (norm && (args.parts[i].norm != nullptr) != (args.parts[i].rotate != 0)) return 1;
  }
  if (norm && s.d != 64 && s.d != 128 && s.d != 256) return 1;
  IhaMixGpuArgs filled = args;
  filled.block_rows = MixGpuRowsFor(s, args.terms, norm, args.max_shared_bytes);
  if (filled.block_rows == 0) return 1;
  if (s.tokens == 0) return 0;
  const uint32_t columns = MixGpuAlphaLayoutFor(s, args.terms).columns;
  return columns == 16   ? Launch<1>(filled, norm, stream)
         : columns == 32 ? Launch<2>(filled, norm, stream)
                         : Launch<4>(filled, norm, stream);
}

}  // namespace iha::kernels
