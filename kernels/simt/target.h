// target.h: what a kernel's launcher takes and returns, for host code of either build.
//
// A launcher is declared once, in the contract header of its kernel: `GpuStatus Foo(const FooArgs&, GpuStream)`. In the
// emulated library (any C++ compiler) a stream is a simt::Device and the call returns when the kernel is done; compiled
// by nvcc, and for callers that define IHA_GPU_CUDA, it is a cudaStream_t and the call only enqueues. Status 0 is
// success; else CUDA's error code, or 1 when the emulator found an error (Device::report() says which).
#pragma once

#if defined(__CUDACC__) || defined(IHA_GPU_CUDA)
struct CUstream_st;
namespace iha::kernels {
using GpuStream = CUstream_st*;
}
#else
namespace iha::kernels {
namespace simt {
class Device;
}
using GpuStream = simt::Device*;
}  // namespace iha::kernels
#endif

// For small functions that hosts and device code share.
#ifdef __CUDACC__
#define IHA_HOST_DEVICE __host__ __device__
#else
#define IHA_HOST_DEVICE
#endif

namespace iha::kernels {
using GpuStatus = int;
// Of a block on sm_90; others have less (163 KB on 8.0, 99 KB on 8.6 and 8.9), which launchers that cut by it are told.
inline constexpr unsigned kGpuMaxSharedBytes = 227 * 1024;
}  // namespace iha::kernels
