#include "model/torch_ops/op_shapes.h"

#include <c10/util/Exception.h>

#include <cmath>

namespace iha::torch_ops {
namespace {

// An argument of an operator, for what is said about it.
struct Argument {
  const char* op;
  const char* name;
  const at::Tensor& tensor;
};

void CheckIs(const Argument& a, at::IntArrayRef sizes, const char* meaning, c10::ScalarType type, c10::Device device) {
  TORCH_CHECK(a.tensor.sizes() == sizes, "iha::", a.op, ": ", a.name, " is ", a.tensor.sizes(), "; expected ", meaning,
              " = ", sizes);
  TORCH_CHECK(a.tensor.scalar_type() == type, "iha::", a.op, ": ", a.name, " is ", a.tensor.scalar_type(),
              "; expected ", type, " on ", device);
  TORCH_CHECK(a.tensor.device() == device, "iha::", a.op, ": ", a.name, " is on ", a.tensor.device(),
              "; expected it on ", device, " as the first argument");
}

// The first argument: of any size, none of it 0.
void CheckRows(c10::ScalarType rows, const Argument& a) {
  TORCH_CHECK(a.tensor.dim() == 4, "iha::", a.op, ": ", a.name, " is ", a.tensor.sizes(), "; expected [B, T, H, d]");
  TORCH_CHECK(a.tensor.numel() > 0, "iha::", a.op, ": ", a.name, " is ", a.tensor.sizes(),
              "; expected no size to be 0");
  CheckIs(a, a.tensor.sizes(), "[B, T, H, d]", rows, a.tensor.device());
}

}  // namespace

MixShape CheckMix(c10::ScalarType rows, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const at::Tensor& alpha_q, const at::Tensor& alpha_k, const at::Tensor& alpha_v,
                  const at::Tensor& cos, const at::Tensor& sin, const at::Tensor& shift_cos,
                  const at::Tensor& shift_sin) {
  constexpr char kOp[] = "mix_rope";
  CheckRows(rows, {kOp, "q", q});
  const int64_t heads = q.size(2), d = q.size(3);
  TORCH_CHECK(d % 2 == 0, "iha::mix_rope: q is ", q.sizes(), "; expected an even d");
  CheckIs({kOp, "k", k}, q.sizes(), "q's sizes", rows, q.device());
  CheckIs({kOp, "v", v}, q.sizes(), "q's sizes", rows, q.device());
  TORCH_CHECK(alpha_q.dim() == 3 && alpha_q.size(2) > 0, "iha::mix_rope: alpha_q is ", alpha_q.sizes(),
              "; expected [H source, H target, P]");
  const int64_t pseudo = alpha_q.size(2);
  const int64_t alpha[] = {heads, heads, pseudo}, table[] = {q.size(1), d / 2}, shift[] = {pseudo, d / 2};
  CheckIs({kOp, "alpha_q", alpha_q}, alpha, "[H source, H target, P]", at::kFloat, q.device());
  CheckIs({kOp, "alpha_k", alpha_k}, alpha, "[H source, H target, P]", at::kFloat, q.device());
  CheckIs({kOp, "alpha_v", alpha_v}, alpha, "[H source, H target, P]", at::kFloat, q.device());
  CheckIs({kOp, "cos", cos}, table, "[T, d / 2]", at::kFloat, q.device());
  CheckIs({kOp, "sin", sin}, table, "[T, d / 2]", at::kFloat, q.device());
  CheckIs({kOp, "shift_cos", shift_cos}, shift, "[P, d / 2]", at::kFloat, q.device());
  CheckIs({kOp, "shift_sin", shift_sin}, shift, "[P, d / 2]", at::kFloat, q.device());
  return {q.size(0), q.size(1), heads, pseudo, d};
}

CollapseShape CheckCollapse(c10::ScalarType rows, const at::Tensor& a, const at::Tensor& collapse, int64_t pseudo,
                            const std::optional<at::Tensor>& v) {
  constexpr char kOp[] = "collapse";
  CheckRows(rows, {kOp, "a", a});
  TORCH_CHECK(pseudo > 0 && a.size(1) % pseudo == 0, "iha::collapse: a has ", a.size(1),
              " virtual tokens; expected a multiple of pseudo = ", pseudo);
  const int64_t heads = a.size(2);
  const bool global = collapse.dim() == 2 && collapse.size(1) == heads * pseudo && heads > 1;
  const int64_t sizes[] = {heads, global ? heads * pseudo : pseudo};
  CheckIs({kOp, "collapse", collapse}, sizes, "[H, P] or [H, H P]", at::kFloat, a.device());
  if (v.has_value()) CheckIs({kOp, "v", *v}, a.sizes(), "a's sizes", rows, a.device());
  return {a.size(0), a.size(1) / pseudo, heads, pseudo, a.size(3), global};
}

AttentionShape CheckAttention(c10::ScalarType rows, const char* op, const at::Tensor& q, const at::Tensor& k,
                              const at::Tensor& v, std::optional<double> scale, int64_t pseudo, int64_t window) {
  CheckRows(rows, {op, "q", q});
  CheckRows(rows, {op, "k", k});
  CheckRows(rows, {op, "v", v});
  AttentionShape s{};
  s.batch = q.size(0);
  s.rows = q.size(1);
  s.keys = k.size(1);
  s.heads = q.size(2);
  s.kv_heads = k.size(2);
  s.value_heads = v.size(2);
  s.d = q.size(3);
  s.d_v = v.size(3);
  s.scale = static_cast<float>(scale.value_or(1.0 / std::sqrt(static_cast<double>(s.d))));
  const int64_t keys[] = {s.batch, s.keys, s.kv_heads, s.d};
  CheckIs({op, "k", k}, keys, "[B, T', G, d]", rows, q.device());
  const bool pairs = s.d_v == 2 * s.d && 2 * s.value_heads == s.kv_heads;
  const int64_t values[] = {s.batch, s.keys, pairs ? s.kv_heads / 2 : s.kv_heads, pairs ? 2 * s.d : s.d};
  CheckIs({op, "v", v}, values, "[B, T', G, d] or [B, T', G / 2, 2 d]", rows, q.device());
  TORCH_CHECK(s.heads % s.kv_heads == 0, "iha::", op, ": ", s.heads, " heads of q and ", s.kv_heads,
              " of k; expected a multiple");
  TORCH_CHECK(s.keys >= s.rows, "iha::", op, ": ", s.rows, " rows of q and ", s.keys,
              " of k; expected as many or more");
  TORCH_CHECK(pseudo > 0 && s.rows % pseudo == 0 && s.keys % pseudo == 0, "iha::", op, ": ", s.rows, " and ", s.keys,
              " virtual tokens; expected multiples of pseudo = ", pseudo);
  TORCH_CHECK(window >= 0, "iha::", op, ": window is ", window, "; expected 0 = none, or more");
  s.window = window < s.keys ? static_cast<uint32_t>(window) : 0;
  return s;
}

void CheckDim(const char* op, int64_t d, int64_t most) {
  TORCH_CHECK(d <= most, "iha::", op, ": heads of ", d, " values; expected at most ", most);
}

void CheckTalking(const AttentionShape& s, const at::Tensor& q, const at::Tensor& pre, const at::Tensor& post) {
  TORCH_CHECK(s.d == s.d_v, "iha::talking_heads: values of ", s.d_v, " for keys of ", s.d, "; expected equal sizes");
  const int64_t sizes[] = {s.heads, s.heads};
  CheckIs({"talking_heads", "pre", pre}, sizes, "[H, H]", at::kFloat, q.device());
  CheckIs({"talking_heads", "post", post}, sizes, "[H, H]", at::kFloat, q.device());
}

void CheckXsa(c10::ScalarType rows, const at::Tensor& y, const at::Tensor& v) {
  CheckRows(rows, {"xsa", "y", y});
  CheckRows(rows, {"xsa", "v", v});
  const int64_t sizes[] = {y.size(0), y.size(1), v.size(2), y.size(3)};
  CheckIs({"xsa", "v", v}, sizes, "[B, T, G, d]", rows, y.device());
  TORCH_CHECK(y.size(2) % v.size(2) == 0, "iha::xsa: ", y.size(2), " heads of y and ", v.size(2),
              " of v; expected a multiple");
}

bool CheckGate(c10::ScalarType rows, const at::Tensor& y, const at::Tensor& g) {
  CheckRows(rows, {"gate", "y", y});
  const bool elementwise = g.dim() == 4;
  CheckIs({"gate", "g", g}, elementwise ? y.sizes() : y.sizes().slice(0, 3), "[B, T, H] or [B, T, H, d]", rows,
          y.device());
  return elementwise;
}

void CheckDiffGated(c10::ScalarType rows, const at::Tensor& a, const at::Tensor& logits) {
  CheckRows(rows, {"diff_gated", "a", a});
  TORCH_CHECK(a.size(2) % 2 == 0, "iha::diff_gated: a has ", a.size(2), " heads; expected pairs");
  const int64_t sizes[] = {a.size(0), a.size(1), a.size(2) / 2};
  CheckIs({"diff_gated", "logits", logits}, sizes, "[B, T, H / 2]", at::kFloat, a.device());
}

void CheckDiffNormed(c10::ScalarType rows, const at::Tensor& a, const at::Tensor& weight) {
  CheckRows(rows, {"diff_normed", "a", a});
  TORCH_CHECK(a.size(2) % 2 == 0, "iha::diff_normed: a has ", a.size(2), " heads; expected pairs");
  const int64_t sizes[] = {a.size(3)};
  CheckIs({"diff_normed", "weight", weight}, sizes, "[d]", at::kFloat, a.device());
}

}  // namespace iha::torch_ops
