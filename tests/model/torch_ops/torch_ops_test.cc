// Operators of torch.ops.iha on the CPU beside plain expressions of LibTorch (torch_ops_test.py: the same in Python).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#ifdef IHA_TORCH_OPS
#include <cmath>

#include "tests/model/torch_ops/torch_ops_util.h"

namespace iha::torch_ops {
namespace {

using testing::Call;
using testing::CallAll;
using testing::Random;
using testing::Worst;

// Sums of a few dozen products in fp32, in another order: 1e-5 of the largest value is a hundred of their roundings.
constexpr double kClose = 1e-5;

at::Tensor Double(const at::Tensor& x) { return x.to(at::kDouble); }

at::Tensor Rotated(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const int64_t half = x.size(3) / 2;
  const at::Tensor u = x.narrow(3, 0, half), v = x.narrow(3, half, half), c = cos.unsqueeze(1), s = sin.unsqueeze(1);
  return at::cat({u * c - v * s, v * c + u * s}, 3);
}

at::Tensor Attended(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& seen) {
  const at::Tensor scores = at::einsum("bqhd,bkhd->bhqk", {Double(q), Double(k)}) / std::sqrt(q.size(3));
  return at::einsum("bhqk,bkhd->bqhd", {scores.masked_fill(seen.logical_not(), -INFINITY).softmax(-1), Double(v)});
}

TEST(TorchOps, MixRopeIsTheDefinition) {
  at::manual_seed(1);
  const int64_t tokens = 7, heads = 3, pseudo = 2, d = 16;
  const at::Tensor angles = at::arange(tokens * pseudo, at::kDouble).unsqueeze(1) *
                            at::pow(10000.0, at::arange(d / 2, at::kDouble) * (-2.0 / d));
  const at::Tensor cos = angles.cos(), sin = angles.sin();
  torch::jit::Stack arguments;
  for (int i = 0; i < 3; i++) arguments.emplace_back(Random({2, tokens, heads, d}));
  for (int i = 0; i < 3; i++) arguments.emplace_back(Random({heads, heads, pseudo}));
  for (const at::Tensor& table : {cos, sin}) arguments.emplace_back(table.slice(0, 0, {}, pseudo).to(at::kFloat));
  for (const at::Tensor& table : {cos, sin}) arguments.emplace_back(table.slice(0, 0, pseudo).to(at::kFloat));
  const std::vector<at::Tensor> got = CallAll("mix_rope", arguments);
  ASSERT_EQ(got.size(), 3u);
  for (size_t i = 0; i < 3; i++) {
    const at::Tensor x = Double(arguments[i].toTensor()), alpha = Double(arguments[3 + i].toTensor());
    const at::Tensor mixed = at::einsum("btmd,mhj->btjhd", {x, alpha}).reshape({2, tokens * pseudo, heads, d});
    EXPECT_LT(Worst(got[i], i == 2 ? mixed : Rotated(mixed, cos, sin)), kClose) << i;
  }
}

TEST(TorchOps, CollapseIsPerHeadOrOfAll) {
  at::manual_seed(2);
  const at::Tensor a = Random({2, 20, 3, 8}), v = Random({2, 20, 3, 8}), part = Random({3, 4}), all = Random({3, 12});
  const at::Tensor rows = Double(a).reshape({2, 5, 4, 3, 8}), r = Double(all).reshape({3, 3, 4});
  EXPECT_LT(Worst(Call("collapse", {a, part, 4}), at::einsum("btjhd,hj->bthd", {rows, Double(part)})), kClose);
  EXPECT_LT(Worst(Call("collapse", {a, all, 4}), at::einsum("btjid,hij->bthd", {rows, r})), kClose);
  const at::Tensor unit = Double(v) / Double(v).norm(2, {-1}, true);
  const at::Tensor exclusive = (Double(a) - (Double(a) * unit).sum(-1, true) * unit).reshape({2, 5, 4, 3, 8});
  EXPECT_LT(Worst(Call("collapse", {a, all, 4, v}), at::einsum("btjid,hij->bthd", {exclusive, r})), kClose);
}

TEST(TorchOps, AttentionMasksVirtualTokens) {
  at::manual_seed(3);
  const at::Tensor q = Random({2, 8, 2, 8}), k = Random({2, 72, 2, 8}), v = Random({2, 72, 2, 8});
  const at::Tensor position = at::arange(64, 72).unsqueeze(1), key = at::arange(72).unsqueeze(0);
  EXPECT_LT(Worst(Call("attention", {q, k, v}), Attended(q, k, v, key <= position)), kClose);
  const at::Tensor last = position.div(4, "floor") * 4 + 3;
  EXPECT_LT(Worst(Call("attention", {q, k, v, c10::IValue(), 4, 0, true}), Attended(q, k, v, key <= last)), kClose);
  const at::Tensor near = (key <= position).logical_and(key > position - 5);
  EXPECT_LT(Worst(Call("attention", {q, k, v, c10::IValue(), 4, 5}), Attended(q, k, v, near)), kClose);
  // Wider than 32 bits: nothing is hidden.
  const int64_t wide = (int64_t{1} << 32) + 5;
  EXPECT_LT(Worst(Call("attention", {q, k, v, c10::IValue(), 4, wide}), Attended(q, k, v, key <= position)), kClose);
}

TEST(TorchOps, TalkingHeadsMixBeforeAndAfter) {
  at::manual_seed(4);
  const at::Tensor q = Random({1, 9, 3, 8}), k = Random({1, 70, 3, 8}), v = Random({1, 70, 3, 8});
  const at::Tensor pre = Random({3, 3}), post = Random({3, 3});
  const at::Tensor hidden = at::arange(70).unsqueeze(0) > at::arange(61, 70).unsqueeze(1);
  at::Tensor x = at::einsum("bqhd,bkhd->bhqk", {Double(q), Double(k)}) / std::sqrt(8.0);
  x = at::einsum("baqk,ac->bcqk", {x, Double(pre)}).masked_fill(hidden, -INFINITY).softmax(-1);
  x = at::einsum("bcqk,ce->beqk", {x, Double(post)});
  EXPECT_LT(Worst(Call("talking_heads", {q, k, v, pre, post}), at::einsum("bhqk,bkhd->bqhd", {x, Double(v)})), kClose);
}

TEST(TorchOps, EpiloguesFollowTheirEquations) {
  at::manual_seed(5);
  const at::Tensor y = Random({2, 5, 4, 16}), v = Random({2, 5, 2, 16}), g = Random({2, 5, 4}), l = Random({2, 5, 2});
  const at::Tensor values = Double(v).repeat_interleave(2, 2), unit = values / values.norm(2, {-1}, true);
  EXPECT_LT(Worst(Call("xsa", {y, v}), Double(y) - (Double(y) * unit).sum(-1, true) * unit), kClose);
  EXPECT_LT(Worst(Call("gate", {y, g}), Double(y) * Double(g).sigmoid().unsqueeze(-1)), kClose);
  EXPECT_LT(Worst(Call("gate", {y, y}), Double(y) * Double(y).sigmoid()), kClose);
  const at::Tensor even = Double(y).slice(2, 0, {}, 2), odd = Double(y).slice(2, 1, {}, 2), w = Random({16});
  EXPECT_LT(Worst(Call("diff_gated", {y, l}), even - Double(l).sigmoid().unsqueeze(-1) * odd), kClose);
  const at::Tensor x = even - 0.3 * odd;
  const at::Tensor want = x / (x.pow(2).mean(-1, true) + 1e-5).sqrt() * Double(w) * 0.8;
  EXPECT_LT(Worst(Call("diff_normed", {y, w, 0.3, 1e-5, 0.8}), want), kClose);
}

TEST(TorchOps, RefusalsNameTheArgument) {
  const at::Tensor y = Random({1, 4, 2, 8});
  const auto message = [](const char* op, torch::jit::Stack arguments) -> std::string {
    try {
      Call(op, std::move(arguments));
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "";
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(message("gate", {y, Random({1, 4, 3})}),
              HasSubstr("iha::gate: g is [1, 4, 3]; expected [B, T, H] or [B, T, H, d] = [1, 4, 2]"));
  EXPECT_THAT(message("gate", {y[0], y}), HasSubstr("iha::gate: y is [4, 2, 8]; expected [B, T, H, d]"));
  EXPECT_THAT(message("xsa", {y, y.to(at::kDouble)}), HasSubstr("iha::xsa: v is Double; expected Float on cpu"));
  EXPECT_THAT(message("collapse", {y, Random({2, 3}), 3}), HasSubstr("4 virtual tokens; expected a multiple"));
  EXPECT_THAT(message("attention", {y, y.narrow(1, 0, 3), y.narrow(1, 0, 3)}), HasSubstr("4 rows of q and 3 of k"));
  EXPECT_THAT(message("gate", {y.clone().requires_grad_(), y}), HasSubstr("iha::gate has no gradient"));
  // More than a kernel has room for; the largest that it has.
  const at::Tensor wide = Random({1, 2, 2, 1025}), large = Random({1, 2, 2, 513}), pre = Random({2, 2});
  EXPECT_THAT(message("xsa", {wide, wide}), HasSubstr("iha::xsa: heads of 1025 values; expected at most 1024"));
  EXPECT_EQ(message("xsa", {wide.narrow(3, 0, 1024), wide.narrow(3, 0, 1024)}), "");
  EXPECT_THAT(message("attention", {large, large, large}),
              HasSubstr("iha::attention: heads of 513 values; expected at most 512"));
  EXPECT_EQ(message("attention", {large.narrow(3, 0, 512), large.narrow(3, 0, 512), large.narrow(3, 0, 512)}), "");
  EXPECT_THAT(message("talking_heads", {large, large, large, pre, pre}),
              HasSubstr("iha::talking_heads: heads of 513 values; expected at most 512"));
}

}  // namespace
}  // namespace iha::torch_ops

#else

TEST(TorchOps, NeedLibTorch) { GTEST_SKIP() << "built without torch.ops.iha"; }

#endif
