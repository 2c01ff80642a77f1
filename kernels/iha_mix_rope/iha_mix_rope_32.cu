#include "kernels/iha_mix_rope/iha_mix_rope.cuh"

namespace iha::kernels {

GpuStatus IhaMixRopeGpu32(const IhaMixGpuArgs& args, bool norm, GpuStream stream) {
  return LaunchMix<2>(args, norm, stream);
}

}  // namespace iha::kernels
