#include "model/torch_ops/device_ops.h"

#include <ATen/ATen.h>

#include "kernels/attention/attention_gpu.h"
#include "kernels/attention/kv_pages_gpu.h"
#include "kernels/epilogue/epilogue_gpu.h"
#include "kernels/iha_collapse/iha_collapse_gpu.h"
#include "kernels/iha_mix_rope/iha_mix_rope_gpu.h"
#include "kernels/talking_heads/talking_heads_gpu.h"
#include "model/torch_ops/op_shapes.h"

namespace iha::torch_ops::device {
namespace {

uint32_t U32(int64_t n) { return static_cast<uint32_t>(n); }

constexpr uintptr_t kAlignment = 16;  // kernels load and copy as much at a time

bool IsAligned(const at::Tensor& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % kAlignment == 0;
}

// Dense, and where kernels can load it: a view may begin at any value of its memory.
at::Tensor Dense(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  return IsAligned(dense) ? dense : dense.clone(at::MemoryFormat::Contiguous);
}

// Memory of tensors as kernels take it. Results are made by Out, everything else holds values.
template <class T>
const T* In(DeviceScope& scope, const at::Tensor& tensor) {
  TORCH_CHECK(IsAligned(tensor), "iha: a tensor of ", tensor.sizes(), " is not aligned to ", kAlignment, " bytes");
  scope.Use(tensor, true);
  return static_cast<const T*>(tensor.const_data_ptr());
}
template <class T>
T* Out(DeviceScope& scope, const at::Tensor& tensor, bool written = false) {
  scope.Use(tensor, written);
  return static_cast<T*>(tensor.mutable_data_ptr());
}

void Check(DeviceScope& scope, kernels::GpuStatus status, const char* op, const at::Tensor& tensor) {
  TORCH_CHECK(status == 0, "iha::", op, ": ", tensor.sizes(), ": ", scope.Why(status));
}

// The sum of two bf16 that a fp32 matrix is taken as: [rows][2][columns], high parts first, zeros around it.
at::Tensor Packed(const at::Tensor& matrix, uint32_t rows, uint32_t columns) {
  const at::Tensor packed =
      at::zeros({static_cast<int64_t>(rows), 2, static_cast<int64_t>(columns)}, matrix.options().dtype(at::kBFloat16));
  const at::Tensor high = matrix.to(at::kBFloat16), low = (matrix - high.to(at::kFloat)).to(at::kBFloat16);
  const at::Tensor inner = packed.narrow(0, 0, matrix.size(0)).narrow(2, 0, matrix.size(1));
  inner.select(1, 0).copy_(high);
  inner.select(1, 1).copy_(low);
  return packed;
}

// 0, 1, .. n - 1 times `step`, as the kernels' 32-bit numbers.
at::Tensor Counted(const at::Tensor& beside, int64_t n, int64_t step = 1) {
  return at::arange(0, n * step, step, beside.options().dtype(at::kInt));
}

void CheckHeadSize(const char* op, int64_t d) {
  TORCH_CHECK(d == 64 || d == 128 || d == 256, "iha::", op, ": heads of ", d,
              " values; expected 64, 128 or 256 on a GPU");
}

// Keys and values in pages, and the arguments of attention over them.
struct Paged {
  at::Tensor queries, keys, values, table, q_begin, kv_length, sequence, positions, k_pages, v_pages, out;
  kernels::AttentionGpuArgs args;
};

Paged Page(DeviceScope& scope, const char* op, const AttentionShape& s, const at::Tensor& q, const at::Tensor& k,
           const at::Tensor& v) {
  CheckHeadSize(op, s.d);
  const int64_t pages = (s.keys + kernels::kGpuKeyBlock - 1) / kernels::kGpuKeyBlock;
  Paged p;
  p.queries = Dense(q);
  p.keys = Dense(k);
  p.values = Dense(v);
  p.table = Counted(q, s.batch * pages);
  p.q_begin = Counted(q, s.batch + 1, s.rows);
  p.kv_length = at::full({s.batch}, s.keys, q.options().dtype(at::kInt));
  p.sequence = Counted(q, s.batch).repeat_interleave(s.keys);
  p.positions = Counted(q, s.keys).repeat({s.batch});
  p.k_pages = at::empty({s.batch * pages, s.kv_heads, kernels::kGpuKeyBlock, s.d}, q.options());
  p.v_pages = at::empty_like(p.k_pages);
  p.out = at::empty({s.batch, s.rows, s.heads, s.d_v}, q.options());
  auto* const k_pages = Out<uint16_t>(scope, p.k_pages);
  auto* const v_pages = Out<uint16_t>(scope, p.v_pages);
  const auto* const table = In<int32_t>(scope, p.table);
  Check(
      scope,
      kernels::KvAppendGpu(
          {.pages =
               {.k_pages = k_pages, .v_pages = v_pages, .kv_heads = U32(s.kv_heads), .d = U32(s.d), .d_v = U32(s.d_v)},
           .k = In<uint16_t>(scope, p.keys),
           .v = In<uint16_t>(scope, p.values),
           .row_sequence = In<uint32_t>(scope, p.sequence),
           .positions = In<uint32_t>(scope, p.positions),
           .page_table = table,
           .pages_per_sequence = U32(pages),
           .rows = U32(s.batch * s.keys)},
          scope.stream()),
      op, k);
  p.args = {.q = In<uint16_t>(scope, p.queries),
            .k_pages = k_pages,
            .v_pages = v_pages,
            .page_table = table,
            .q_begin = In<uint32_t>(scope, p.q_begin),
            .kv_length = In<uint32_t>(scope, p.kv_length),
            .out = Out<uint16_t>(scope, p.out),
            .sequences = U32(s.batch),
            .max_rows = U32(s.rows),
            .pages_per_sequence = U32(pages),
            .heads = U32(s.heads),
            .kv_heads = U32(s.kv_heads),
            .d = U32(s.d),
            .d_v = U32(s.d_v),
            .scale = s.scale,
            .max_keys = U32(s.keys)};
  return p;
}

// Rows of an epilogue: one input of as many heads, or pairs.
at::Tensor Epilogue(DeviceScope& scope, const char* op, const at::Tensor& a, int64_t heads,
                    kernels::EpilogueGpuArgs args) {
  CheckHeadSize(op, a.size(3));
  const at::Tensor rows = Dense(a), out = at::empty({a.size(0), a.size(1), heads, a.size(3)}, a.options());
  args.a = In<uint16_t>(scope, rows);
  args.out = Out<uint16_t>(scope, out);
  args.tokens = U32(a.size(0) * a.size(1));
  args.heads = U32(heads);
  args.d = U32(a.size(3));
  Check(scope, kernels::AttentionEpilogueGpu(args, scope.stream()), op, a);
  return out;
}

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> MixRope(DeviceScope& scope, const at::Tensor& q, const at::Tensor& k,
                                                       const at::Tensor& v, const at::Tensor& alpha_q,
                                                       const at::Tensor& alpha_k, const at::Tensor& alpha_v,
                                                       const at::Tensor& cos, const at::Tensor& sin,
                                                       const at::Tensor& shift_cos, const at::Tensor& shift_sin) {
  const MixShape s = CheckMix(at::kBFloat16, q, k, v, alpha_q, alpha_k, alpha_v, cos, sin, shift_cos, shift_sin);
  TORCH_CHECK(s.heads <= kernels::kMixGpuMaxHeads && s.d % 64 == 0, "iha::mix_rope: ", s.heads, " heads of ", s.d,
              " values; expected at most ", kernels::kMixGpuMaxHeads, " of a multiple of 64 on a GPU");
  kernels::IhaMixGpuArgs args{
      .shape = {U32(s.batch * s.tokens), U32(s.heads), U32(s.pseudo), U32(s.d)}, .terms = 2, .count = 3, .parts = {}};
  const kernels::MixGpuAlphaLayout layout = kernels::MixGpuAlphaLayoutFor(args.shape, args.terms);
  const at::Tensor first_row = Counted(q, s.tokens).repeat({s.batch});
  const at::Tensor tables[] = {Dense(cos), Dense(sin), Dense(shift_cos), Dense(shift_sin)};
  args.first_row = In<uint32_t>(scope, first_row);
  args.cos = In<float>(scope, tables[0]);
  args.sin = In<float>(scope, tables[1]);
  args.shift_cos = In<float>(scope, tables[2]);
  args.shift_sin = In<float>(scope, tables[3]);
  const std::pair<const at::Tensor*, const at::Tensor*> parts[] = {{&q, &alpha_q}, {&k, &alpha_k}, {&v, &alpha_v}};
  at::Tensor rows[3], alphas[3], out[3];
  for (int i = 0; i < 3; i++) {
    rows[i] = Dense(*parts[i].first);
    // [source, target, P] to rows (target, P) of sources.
    alphas[i] =
        Packed(parts[i].second->permute({1, 2, 0}).reshape({s.heads * s.pseudo, s.heads}), layout.rows, layout.columns);
    out[i] = at::empty({s.batch, s.tokens * s.pseudo, s.heads, s.d}, q.options());
    args.parts[i] = {.x = In<uint16_t>(scope, rows[i]),
                     .token_stride = U32(s.heads * s.d),
                     .rotate = i == 2 ? 0u : 1u,
                     .alpha = In<uint16_t>(scope, alphas[i]),
                     .y = Out<uint16_t>(scope, out[i])};
  }
  Check(scope, kernels::IhaMixRopeGpu(args, scope.stream()), "mix_rope", q);
  return {out[0], out[1], out[2]};
}

at::Tensor Collapse(DeviceScope& scope, const at::Tensor& a, const at::Tensor& collapse, int64_t pseudo,
                    const std::optional<at::Tensor>& v) {
  const CollapseShape s = CheckCollapse(at::kBFloat16, a, collapse, pseudo, v);
  CheckHeadSize("collapse", s.d);
  const at::Tensor rows = Dense(a), values = v.has_value() ? Dense(*v) : at::Tensor();
  const at::Tensor out = at::empty({s.batch, s.tokens, s.heads, s.d}, a.options());
  const uint16_t* const v_rows = v.has_value() ? In<uint16_t>(scope, values) : nullptr;
  if (s.global) {
    TORCH_CHECK(s.heads <= kernels::kCollapseGpuMaxHeads, "iha::collapse: ", s.heads, " heads; expected at most ",
                kernels::kCollapseGpuMaxHeads, " on a GPU");
    const auto layout = kernels::CollapseGpuLayoutFor(U32(s.heads), U32(s.pseudo), 2);
    const at::Tensor packed = Packed(collapse, layout.rows, layout.columns);
    Check(scope,
          kernels::IhaCollapseGlobalGpu({.a = In<uint16_t>(scope, rows),
                                         .collapse = In<uint16_t>(scope, packed),
                                         .out = Out<uint16_t>(scope, out),
                                         .terms = 2,
                                         .tokens = U32(s.batch * s.tokens),
                                         .heads = U32(s.heads),
                                         .pseudo = U32(s.pseudo),
                                         .d = U32(s.d),
                                         .v = v_rows},
                                        scope.stream()),
          "collapse", a);
    return out;
  }
  const at::Tensor r = Dense(collapse);
  Check(scope,
        kernels::IhaCollapseGpu({.a = In<uint16_t>(scope, rows),
                                 .v = v_rows,
                                 .collapse = In<float>(scope, r),
                                 .out = Out<uint16_t>(scope, out),
                                 .tokens = U32(s.batch * s.tokens),
                                 .heads = U32(s.heads),
                                 .pseudo = U32(s.pseudo),
                                 .d = U32(s.d)},
                                scope.stream()),
        "collapse", a);
  return out;
}

at::Tensor Attention(DeviceScope& scope, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     std::optional<double> scale, int64_t pseudo, int64_t window, bool token_causal,
                     bool token_window) {
  const AttentionShape s = CheckAttention(at::kBFloat16, "attention", q, k, v, scale, pseudo, window);
  TORCH_CHECK(s.d_v <= 256, "iha::attention: values of ", s.d_v, "; expected at most 256 on a GPU");
  Paged paged = Page(scope, "attention", s, q, k, v);
  paged.args.mask = {
      .pseudo = U32(pseudo), .token_causal = token_causal, .token_window = token_window, .window = s.window};
  Check(scope, kernels::AttentionGpu(paged.args, scope.stream()), "attention", q);
  return paged.out;
}

at::Tensor TalkingHeads(DeviceScope& scope, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                        const at::Tensor& pre, const at::Tensor& post, std::optional<double> scale, int64_t window) {
  constexpr size_t kScratchBytes = size_t{256} << 20;
  const AttentionShape s = CheckAttention(at::kBFloat16, "talking_heads", q, k, v, scale, 1, window);
  CheckTalking(s, q, pre, post);
  TORCH_CHECK(s.heads <= kernels::kTalkingGpuMaxHeads, "iha::talking_heads: ", s.heads, " heads; expected at most ",
              kernels::kTalkingGpuMaxHeads, " on a GPU");
  Paged paged = Page(scope, "talking_heads", s, q, k, v);
  paged.args.mask.window = s.window;
  const at::Tensor before = Dense(pre), after = Dense(post);
  kernels::TalkingHeadsGpuArgs args{
      .attention = paged.args, .pre = In<float>(scope, before), .post = In<float>(scope, after)};
  args.block_rows = kernels::TalkingHeadsGpuRowsFor(paged.args, kScratchBytes);
  const at::Tensor scores = at::empty({static_cast<int64_t>(kernels::TalkingHeadsGpuScratch(args))}, pre.options());
  args.scores = Out<float>(scope, scores);
  Check(scope, kernels::TalkingHeadsGpu(args, scope.stream()), "talking_heads", q);
  return paged.out;
}

at::Tensor Xsa(DeviceScope& scope, const at::Tensor& y, const at::Tensor& v) {
  CheckXsa(at::kBFloat16, y, v);
  const at::Tensor values = Dense(v);
  kernels::EpilogueGpuArgs args;
  args.v = In<uint16_t>(scope, values);
  args.v_stride = U32(v.size(2) * v.size(3));
  args.v_group = U32(y.size(2) / v.size(2));
  return Epilogue(scope, "xsa", y, y.size(2), args);
}

at::Tensor Gate(DeviceScope& scope, const at::Tensor& y, const at::Tensor& g) {
  const at::Tensor gates = Dense(g);
  kernels::EpilogueGpuArgs args;
  args.gate_elementwise = CheckGate(at::kBFloat16, y, g);
  args.gate = In<uint16_t>(scope, gates);
  return Epilogue(scope, "gate", y, y.size(2), args);
}

at::Tensor DiffGated(DeviceScope& scope, const at::Tensor& a, const at::Tensor& logits) {
  CheckDiffGated(at::kBFloat16, a, logits);
  const at::Tensor l = Dense(logits);
  kernels::EpilogueGpuArgs args;
  args.combine = kernels::EpilogueCombine::kDiffGated;
  args.logits = In<float>(scope, l);
  return Epilogue(scope, "diff_gated", a, a.size(2) / 2, args);
}

at::Tensor DiffNormed(DeviceScope& scope, const at::Tensor& a, const at::Tensor& weight, double lambda, double eps,
                      double scale) {
  CheckDiffNormed(at::kBFloat16, a, weight);
  const at::Tensor w = Dense(weight);
  kernels::EpilogueGpuArgs args;
  args.combine = kernels::EpilogueCombine::kDiffNormed;
  args.weight = In<float>(scope, w);
  args.lambda = static_cast<float>(lambda);
  args.eps = static_cast<float>(eps);
  args.scale = static_cast<float>(scale);
  return Epilogue(scope, "diff_normed", a, a.size(2) / 2, args);
}

}  // namespace iha::torch_ops::device
