#include "kernels/epilogue/epilogue_gpu.h"

namespace iha::kernels {
namespace {

template <uint32_t kLanes>
GpuStatus Launch(const EpilogueGpuArgs& args, GpuStream stream) {
  switch (args.combine) {
    case EpilogueCombine::kNone:
      return LaunchEpilogue<kLanes, EpilogueCombine::kNone>(args, stream);
    case EpilogueCombine::kDiffGated:
      return LaunchEpilogue<kLanes, EpilogueCombine::kDiffGated>(args, stream);
    case EpilogueCombine::kDiffNormed:
      return LaunchEpilogue<kLanes, EpilogueCombine::kDiffNormed>(args, stream);
  }
  return 1;
}

}  // namespace

GpuStatus AttentionEpilogueGpu(const EpilogueGpuArgs& args, GpuStream stream) {
  if (args.heads == 0 || args.v_group == 0 || (args.v != nullptr && args.v_stride % 8 != 0)) return 1;
  if (args.gate_elementwise && args.gate_stride % 8 != 0) return 1;
  if (args.tokens == 0) return 0;
  EpilogueGpuArgs filled = args;
  if (filled.mean_of == 0) filled.mean_of = args.d;
  if (filled.logits_stride == 0) filled.logits_stride = args.heads;
  if (filled.gate_stride == 0) filled.gate_stride = args.gate_elementwise ? args.heads * args.d : args.heads;
  if (args.d == 64) return Launch<8>(filled, stream);
  if (args.d == 128) return Launch<16>(filled, stream);
  if (args.d == 256) return Launch<32>(filled, stream);
  return 1;
}

}  // namespace iha::kernels
