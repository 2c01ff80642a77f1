#include "kernels/attention/flash.cuh"

namespace iha::kernels {

GpuStatus AttentionGpu64x64(const AttentionGpuArgs& args, GpuStream stream) {
  return LaunchFlash<64, 64>(args, stream);
}

}  // namespace iha::kernels
