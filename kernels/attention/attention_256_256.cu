#include "kernels/attention/flash.cuh"

namespace iha::kernels {

GpuStatus AttentionGpu256x256(const AttentionGpuArgs& args, GpuStream stream) {
  return LaunchFlash<256, 256>(args, stream);
}

}  // namespace iha::kernels
