// cpu_ops.h: the operators on the CPU, by the exact kernels (kernels/*/*_cpu.cc), in fp32. Layouts: op_shapes.h.
//
// Rows do not see each other and threads change no bit. Errors: op_shapes.h's. Thread: any.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace iha::torch_ops::cpu {

std::tuple<at::Tensor, at::Tensor, at::Tensor> MixRope(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                                       const at::Tensor& alpha_q, const at::Tensor& alpha_k,
                                                       const at::Tensor& alpha_v, const at::Tensor& cos,
                                                       const at::Tensor& sin, const at::Tensor& shift_cos,
                                                       const at::Tensor& shift_sin);
at::Tensor Collapse(const at::Tensor& a, const at::Tensor& collapse, int64_t pseudo,
                    const std::optional<at::Tensor>& v);
at::Tensor Attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, std::optional<double> scale,
                     int64_t pseudo, int64_t window, bool token_causal, bool token_window);
at::Tensor TalkingHeads(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& pre,
                        const at::Tensor& post, std::optional<double> scale, int64_t window);
at::Tensor Xsa(const at::Tensor& y, const at::Tensor& v);
at::Tensor Gate(const at::Tensor& y, const at::Tensor& g);
at::Tensor DiffGated(const at::Tensor& a, const at::Tensor& logits);
at::Tensor DiffNormed(const at::Tensor& a, const at::Tensor& weight, double lambda, double eps, double scale);

}  // namespace iha::torch_ops::cpu
