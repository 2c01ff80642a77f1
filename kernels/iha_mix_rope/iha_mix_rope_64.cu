#include "kernels/iha_mix_rope/iha_mix_rope.cuh"

namespace iha::kernels {

GpuStatus IhaMixRopeGpu64(const IhaMixGpuArgs& args, bool norm, GpuStream stream) {
  return LaunchMix<4>(args, norm, stream);
}

}  // namespace iha::kernels
