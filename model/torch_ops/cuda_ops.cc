// The operators for tensors on a GPU: on the tensors' device, in its current stream. Of LibTorch only its CPU part is
// linked, which asks the CUDA part, where that is loaded, for device and stream; so one library serves both.
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <cuda_runtime_api.h>
#include <torch/library.h>

#include "model/torch_ops/device_ops.h"

namespace iha::torch_ops {
namespace {

class CudaScope final : public device::DeviceScope {
 public:
  explicit CudaScope(const at::Tensor& first) : guard_(first.device()) {
    const c10::Stream stream = c10::impl::VirtualGuardImpl(c10::kCUDA).getStream(first.device());
    stream_ = static_cast<cudaStream_t>(stream.native_handle());
  }
  kernels::GpuStream stream() override { return stream_; }
  // Memory that is freed before the kernel runs stays until then: LibTorch gives it to later work of the stream only.
  void Use(const at::Tensor& /*tensor*/, bool /*written*/) override {}
  std::string Why(kernels::GpuStatus status) override {
    return status == 1 ? "no kernel for these sizes" : cudaGetErrorString(static_cast<cudaError_t>(status));
  }

 private:
  const c10::DeviceGuard guard_;
  cudaStream_t stream_ = nullptr;
};

// An operator as LibTorch calls it: without the scope, which is made of the first tensor.
template <auto kFunction>
struct OnCuda;
template <class R, class... A, R (*kFunction)(device::DeviceScope&, const at::Tensor&, A...)>
struct OnCuda<kFunction> {
  static R Call(const at::Tensor& first, A... rest) {
    CudaScope scope(first);
    return kFunction(scope, first, rest...);
  }
};

TORCH_LIBRARY_IMPL(iha, CUDA, m) {
  m.impl("mix_rope", OnCuda<device::MixRope>::Call);
  m.impl("collapse", OnCuda<device::Collapse>::Call);
  m.impl("attention", OnCuda<device::Attention>::Call);
  m.impl("talking_heads", OnCuda<device::TalkingHeads>::Call);
  m.impl("xsa", OnCuda<device::Xsa>::Call);
  m.impl("gate", OnCuda<device::Gate>::Call);
  m.impl("diff_gated", OnCuda<device::DiffGated>::Call);
  m.impl("diff_normed", OnCuda<device::DiffNormed>::Call);
}

}  // namespace
}  // namespace iha::torch_ops
