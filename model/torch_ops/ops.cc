// torch.ops.iha: the attention operators for model authors, in Python by torch.ops.load_library of this library.
//
// Forward only: a tensor that wants a gradient is an error, not a wrong one. Layouts: op_shapes.h.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <torch/library.h>

#include "model/torch_ops/cpu_ops.h"

namespace iha::torch_ops {
namespace {

void Refuse(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto wants = [](const c10::IValue& value) { return value.isTensor() && value.toTensor().requires_grad(); };
  const size_t arguments = op.schema().arguments().size();
  for (const c10::IValue& value : torch::jit::last(*stack, arguments)) {
    TORCH_CHECK(!c10::GradMode::is_enabled() || !wants(value), op.schema().name(),
                " has no gradient: call it under torch.no_grad(), or detach its arguments");
  }
  const at::AutoDispatchBelowADInplaceOrView guard;
  op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
}

constexpr const char* kNames[] = {"mix_rope", "collapse", "attention",  "talking_heads",
                                  "xsa",      "gate",     "diff_gated", "diff_normed"};

TORCH_LIBRARY(iha, m) {
  m.def(
      "mix_rope(Tensor q, Tensor k, Tensor v, Tensor alpha_q, Tensor alpha_k, Tensor alpha_v, Tensor cos, Tensor sin, "
      "Tensor shift_cos, Tensor shift_sin) -> (Tensor, Tensor, Tensor)");
  m.def("collapse(Tensor a, Tensor collapse, int pseudo, Tensor? v=None) -> Tensor");
  m.def(
      "attention(Tensor q, Tensor k, Tensor v, *, float? scale=None, int pseudo=1, int window=0, "
      "bool token_causal=False, bool token_window=False) -> Tensor");
  m.def(
      "talking_heads(Tensor q, Tensor k, Tensor v, Tensor pre, Tensor post, *, float? scale=None, int window=0) -> "
      "Tensor");
  m.def("xsa(Tensor y, Tensor v) -> Tensor");
  m.def("gate(Tensor y, Tensor g) -> Tensor");
  m.def("diff_gated(Tensor a, Tensor logits) -> Tensor");
  m.def("diff_normed(Tensor a, Tensor weight, float lam, float eps, float scale) -> Tensor");
}

TORCH_LIBRARY_IMPL(iha, CPU, m) {
  m.impl("mix_rope", cpu::MixRope);
  m.impl("collapse", cpu::Collapse);
  m.impl("attention", cpu::Attention);
  m.impl("talking_heads", cpu::TalkingHeads);
  m.impl("xsa", cpu::Xsa);
  m.impl("gate", cpu::Gate);
  m.impl("diff_gated", cpu::DiffGated);
  m.impl("diff_normed", cpu::DiffNormed);
}

TORCH_LIBRARY_IMPL(iha, Autograd, m) {
  for (const char* name : kNames) m.impl(name, torch::CppFunction::makeFromBoxedFunction<&Refuse>());
}

}  // namespace
}  // namespace iha::torch_ops
