// op_shapes.h: what the operators of torch.ops.iha take: their sizes, read off the tensors and checked.
//
// Layouts, B sequences of T tokens, H heads of d values, P pseudo heads (virtual token t P + j is pseudo token j of t):
//   rows [B, T, H, d]   alpha [H source, H target, P]   cos, sin [T, d / 2] of position t P   shift_cos, shift_sin
//   [P, d / 2] of positions 0 .. P - 1   collapse [H, P] or [H, H P]   pre, post [H from, H to]
// Rows (`rows` below) are fp32 on the CPU and bf16 on a GPU, everything else fp32 on both. All tensors of a call lie on
// one device.
// Errors: c10::Error (a RuntimeError in Python) that names operator and argument, says what was found and expected.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>

namespace iha::torch_ops {

struct MixShape {
  int64_t batch, tokens, heads, pseudo, d;
};
MixShape CheckMix(c10::ScalarType rows, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const at::Tensor& alpha_q, const at::Tensor& alpha_k, const at::Tensor& alpha_v,
                  const at::Tensor& cos, const at::Tensor& sin, const at::Tensor& shift_cos,
                  const at::Tensor& shift_sin);

struct CollapseShape {
  int64_t batch, tokens, heads, pseudo, d;
  bool global;
};
CollapseShape CheckCollapse(c10::ScalarType rows, const at::Tensor& a, const at::Tensor& collapse, int64_t pseudo,
                            const std::optional<at::Tensor>& v);

// q [B, T, H, d], k [B, T', G, d], v [B, T', G, d] or [B, T', G / 2, 2 d]: differential attention, where key heads 2 i
// and 2 i + 1 share a value. The last row of q sits at position T' - 1. window: as the kernels take it, 0 where it
// hides nothing.
struct AttentionShape {
  int64_t batch, rows, keys, heads, kv_heads, value_heads, d, d_v;
  float scale;
  uint32_t window;
};
AttentionShape CheckAttention(c10::ScalarType rows, const char* op, const at::Tensor& q, const at::Tensor& k,
                              const at::Tensor& v, std::optional<double> scale, int64_t pseudo, int64_t window);
// Of a kernel that takes at most so many values a head.
void CheckDim(const char* op, int64_t d, int64_t most);
void CheckTalking(const AttentionShape& shape, const at::Tensor& q, const at::Tensor& pre, const at::Tensor& post);

// y [B, T, H, d] beside v [B, T, G, d].
void CheckXsa(c10::ScalarType rows, const at::Tensor& y, const at::Tensor& v);
// g [B, T, H] or [B, T, H, d]: whether it is the latter.
bool CheckGate(c10::ScalarType rows, const at::Tensor& y, const at::Tensor& g);
// a [B, T, 2 H, d]; logits [B, T, H].
void CheckDiffGated(c10::ScalarType rows, const at::Tensor& a, const at::Tensor& logits);
void CheckDiffNormed(c10::ScalarType rows, const at::Tensor& a, const at::Tensor& weight);

}  // namespace iha::torch_ops
