// device_ops.h: the operators on a device, by the kernels of kernels/*/*_gpu.h, rows in bf16. Layouts: op_shapes.h.
//
// Compiled against CUDA's kernels for torch.ops.iha and against the emulated ones for tests; a call sees its device as
// a DeviceScope. Nothing waits: lengths, tables and packed matrices are made on the device. Sizes without a kernel and
// kernels that cannot be launched are errors as in op_shapes.h. Thread: any; work goes to the current stream.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <tuple>

#include "kernels/simt/target.h"

namespace iha::torch_ops::device {

// Where the kernels of one call run.
class DeviceScope {
 public:
  virtual kernels::GpuStream stream() = 0;
  // Before a kernel gets the tensor's memory; `written`: it holds values already.
  virtual void Use(const at::Tensor& tensor, bool written) = 0;
  // What went wrong with the last launch.
  virtual std::string Why(kernels::GpuStatus status) = 0;

 protected:
  ~DeviceScope() = default;
};

std::tuple<at::Tensor, at::Tensor, at::Tensor> MixRope(DeviceScope& scope, const at::Tensor& q, const at::Tensor& k,
                                                       const at::Tensor& v, const at::Tensor& alpha_q,
                                                       const at::Tensor& alpha_k, const at::Tensor& alpha_v,
                                                       const at::Tensor& cos, const at::Tensor& sin,
                                                       const at::Tensor& shift_cos, const at::Tensor& shift_sin);
at::Tensor Collapse(DeviceScope& scope, const at::Tensor& a, const at::Tensor& collapse, int64_t pseudo,
                    const std::optional<at::Tensor>& v);
at::Tensor Attention(DeviceScope& scope, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     std::optional<double> scale, int64_t pseudo, int64_t window, bool token_causal, bool token_window);
at::Tensor TalkingHeads(DeviceScope& scope, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                        const at::Tensor& pre, const at::Tensor& post, std::optional<double> scale, int64_t window);
at::Tensor Xsa(DeviceScope& scope, const at::Tensor& y, const at::Tensor& v);
at::Tensor Gate(DeviceScope& scope, const at::Tensor& y, const at::Tensor& g);
at::Tensor DiffGated(DeviceScope& scope, const at::Tensor& a, const at::Tensor& logits);
at::Tensor DiffNormed(DeviceScope& scope, const at::Tensor& a, const at::Tensor& weight, double lambda, double eps,
                      double scale);

}  // namespace iha::torch_ops::device
