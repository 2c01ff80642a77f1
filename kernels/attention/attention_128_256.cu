#include "kernels/attention/flash.cuh"

namespace iha::kernels {

GpuStatus AttentionGpu128x256(const AttentionGpuArgs& args, GpuStream stream) {
  return LaunchFlash<128, 256>(args, stream);
}

}  // namespace iha::kernels
