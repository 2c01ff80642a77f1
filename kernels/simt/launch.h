// launch.h: LaunchKernel(name, kernel, shape, stream, arguments...), for the launchers in .cu files.
//
// Arguments are copied by value, as on the device. Dynamic shared memory above 48 KB is asked for where that is needed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/simt/ptx.h"
#include "kernels/simt/target.h"
#ifdef __CUDACC__
#include <cuda_runtime.h>
#endif

namespace iha::kernels {

struct LaunchShape {
  uint32_t grid_x = 1;
  uint32_t grid_y = 1;
  uint32_t grid_z = 1;
  uint32_t threads = 1;
  size_t shared_bytes = 0;
};

#ifdef __CUDACC__
template <class... P>
GpuStatus LaunchKernel(const char* /*name*/, void (*kernel)(P...), const LaunchShape& s, GpuStream stream,
                       const P&... arguments) {
  if (s.shared_bytes > 48 * 1024) {
    const cudaError_t error =
        cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(s.shared_bytes));
    if (error != cudaSuccess) return static_cast<GpuStatus>(error);
  }
  kernel<<<dim3(s.grid_x, s.grid_y, s.grid_z), s.threads, s.shared_bytes, stream>>>(arguments...);
  return static_cast<GpuStatus>(cudaGetLastError());
}
#else
template <class... P>
GpuStatus LaunchKernel(const char* name, void (*kernel)(P...), const LaunchShape& s, GpuStream device,
                       const P&... arguments) {
  const simt::LaunchConfig config{name, {s.grid_x, s.grid_y, s.grid_z}, {s.threads, 1, 1}, s.shared_bytes};
  return device->Launch(config, [=] { kernel(arguments...); }).ok() ? 0 : 1;
}
#endif

}  // namespace iha::kernels
