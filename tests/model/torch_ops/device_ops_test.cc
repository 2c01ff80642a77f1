// The operators for a GPU (device_ops.h) over the emulated kernels, beside those on the CPU.
#include "model/torch_ops/device_ops.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "kernels/simt/device.h"
#include "tests/model/torch_ops/torch_ops_util.h"

namespace iha::torch_ops {
namespace {

using testing::Call;
using testing::CallAll;
using testing::Worst;

// The emulated device knows the tensors that a call uses, and who has written them.
class EmulatedScope final : public device::DeviceScope {
 public:
  ~EmulatedScope() {
    for (const at::Tensor& tensor : tensors_) device_.Unregister(tensor.const_data_ptr());
  }
  kernels::GpuStream stream() override { return &device_; }
  void Use(const at::Tensor& tensor, bool written) override {
    if (!known_.insert(tensor.const_data_ptr()).second) return;
    tensors_.push_back(tensor);
    device_.Register(tensor.const_data_ptr(), tensor.nbytes(), !written, written, "tensor");
  }
  std::string Why(kernels::GpuStatus /*status*/) override {
    return device_.report().ok() ? "no kernel for these sizes" : device_.report().message;
  }

 private:
  kernels::simt::Device device_;
  std::set<const void*> known_;
  std::vector<at::Tensor> tensors_;
};

// Values that bf16 holds, so that both get the same ones.
at::Tensor Random(at::IntArrayRef sizes) { return at::randn(sizes).to(at::kBFloat16).to(at::kFloat); }
at::Tensor Bf16(const at::Tensor& x) { return x.to(at::kBFloat16); }

// A rounding to bf16 is 2^-9 of a value; the kernels round up to four times on the way (numerics.md), and sums of
// rounded values keep relative errors of the largest.
constexpr double kClose = 4.0 / 512;

TEST(DeviceOps, MixRopeIsTheCpus) {
  at::manual_seed(1);
  for (const auto& [heads, pseudo, d] : {std::array<int64_t, 3>{3, 2, 64}, std::array<int64_t, 3>{2, 3, 128}}) {
    const int64_t tokens = 5;
    const at::Tensor angles = at::arange(tokens * pseudo, at::kDouble).unsqueeze(1) *
                              at::pow(10000.0, at::arange(d / 2, at::kDouble) * (-2.0 / static_cast<double>(d)));
    std::vector<at::Tensor> x, alpha, tables;
    for (int i = 0; i < 3; i++) x.push_back(Random({2, tokens, heads, d}));
    for (int i = 0; i < 3; i++) alpha.push_back(at::randn({heads, heads, pseudo}));  // not exact in bf16
    for (const at::Tensor& t : {angles.cos(), angles.sin()}) tables.push_back(t.slice(0, 0, {}, pseudo).to(at::kFloat));
    for (const at::Tensor& t : {angles.cos(), angles.sin()}) tables.push_back(t.slice(0, 0, pseudo).to(at::kFloat));
    const auto want = CallAll(
        "mix_rope", {x[0], x[1], x[2], alpha[0], alpha[1], alpha[2], tables[0], tables[1], tables[2], tables[3]});
    EmulatedScope scope;
    const auto [q, k, v] = device::MixRope(scope, Bf16(x[0]), Bf16(x[1]), Bf16(x[2]), alpha[0], alpha[1], alpha[2],
                                           tables[0], tables[1], tables[2], tables[3]);
    EXPECT_LT(Worst(q, want[0]), kClose);
    EXPECT_LT(Worst(k, want[1]), kClose);
    EXPECT_LT(Worst(v, want[2]), kClose);
  }
}

TEST(DeviceOps, CollapseIsTheCpus) {
  at::manual_seed(2);
  const at::Tensor a = Random({2, 12, 3, 64}), v = Random({2, 12, 3, 64});
  for (const at::Tensor& r : {at::randn({3, 4}), at::randn({3, 12})}) {
    for (const bool xsa : {false, true}) {
      EmulatedScope scope;
      const at::Tensor got = device::Collapse(scope, Bf16(a), r, 4, xsa ? std::optional(Bf16(v)) : std::nullopt);
      EXPECT_LT(Worst(got, Call("collapse", {a, r, 4, xsa ? c10::IValue(v) : c10::IValue()})), kClose) << xsa;
    }
  }
}

TEST(DeviceOps, AttentionIsTheCpus) {
  at::manual_seed(3);
  const at::Tensor q = Random({2, 6, 4, 64}), k = Random({2, 70, 2, 64}), v = Random({2, 70, 2, 64});
  {
    EmulatedScope scope;
    EXPECT_LT(Worst(device::Attention(scope, Bf16(q), Bf16(k), Bf16(v), {}, 2, 9, true, true),
                    Call("attention", {q, k, v, c10::IValue(), 2, 9, true, true})),
              kClose);
  }
  // Pairs of key heads that share a value.
  const at::Tensor wide = Random({2, 70, 1, 128});
  EmulatedScope scope;
  EXPECT_LT(Worst(device::Attention(scope, Bf16(q), Bf16(k), Bf16(wide), 0.25, 1, 0, false, false),
                  Call("attention", {q, k, wide, 0.25})),
            kClose);
}

TEST(DeviceOps, TalkingHeadsAreTheCpus) {
  at::manual_seed(4);
  const at::Tensor q = Random({2, 5, 4, 64}), k = Random({2, 66, 2, 64}), v = Random({2, 66, 2, 64});
  const at::Tensor pre = at::randn({4, 4}), post = at::randn({4, 4});
  EmulatedScope scope;
  EXPECT_LT(Worst(device::TalkingHeads(scope, Bf16(q), Bf16(k), Bf16(v), pre, post, {}, 7),
                  Call("talking_heads", {q, k, v, pre, post, c10::IValue(), 7})),
            kClose);
}

TEST(DeviceOps, EpiloguesAreTheCpus) {
  at::manual_seed(5);
  const at::Tensor y = Random({2, 3, 4, 64}), v = Random({2, 3, 2, 64}), g = Random({2, 3, 4}), w = Random({64});
  const at::Tensor l = at::randn({2, 3, 2});
  EmulatedScope xsa, gate, gates, gated, normed;
  EXPECT_LT(Worst(device::Xsa(xsa, Bf16(y), Bf16(v)), Call("xsa", {y, v})), kClose);
  EXPECT_LT(Worst(device::Gate(gate, Bf16(y), Bf16(g)), Call("gate", {y, g})), kClose);
  EXPECT_LT(Worst(device::Gate(gates, Bf16(y), Bf16(y)), Call("gate", {y, y})), kClose);
  EXPECT_LT(Worst(device::DiffGated(gated, Bf16(y), l), Call("diff_gated", {y, l})), kClose);
  EXPECT_LT(Worst(device::DiffNormed(normed, Bf16(y), w, 0.3, 1e-5, 0.8), Call("diff_normed", {y, w, 0.3, 1e-5, 0.8})),
            kClose);
}

// Kernels load 16 bytes at a time; a view may begin at any value.
TEST(DeviceOps, ViewsMayBeginAnywhere) {
  const auto shifted = [](const at::Tensor& x) {
    const at::Tensor memory = at::empty({x.numel() + 1}, x.options());
    return memory.narrow(0, 1, x.numel()).view(x.sizes()).copy_(x);
  };
  at::manual_seed(6);
  const at::Tensor q = Bf16(Random({1, 3, 2, 64})), k = Bf16(Random({1, 9, 2, 64})), mix = at::randn({2, 2});
  EmulatedScope gate, moved_gate, attention, moved_attention, talking, moved_talking;
  EXPECT_TRUE(at::equal(device::Gate(moved_gate, shifted(q), shifted(q)), device::Gate(gate, q, q)));
  EXPECT_TRUE(at::equal(device::Attention(moved_attention, shifted(q), shifted(k), shifted(k), {}, 1, 0, false, false),
                        device::Attention(attention, q, k, k, {}, 1, 0, false, false)));
  EXPECT_TRUE(at::equal(
      device::TalkingHeads(moved_talking, shifted(q), shifted(k), shifted(k), shifted(mix), shifted(mix), {}, 0),
      device::TalkingHeads(talking, q, k, k, mix, mix, {}, 0)));
}

TEST(DeviceOps, SizesWithoutAKernelAreErrors) {
  EmulatedScope scope;
  const at::Tensor y = Bf16(Random({1, 2, 2, 48}));
  EXPECT_THROW(device::Gate(scope, y, y), c10::Error);
  EXPECT_THROW(device::Gate(scope, y.to(at::kFloat), y), c10::Error);
  EXPECT_THROW(device::Attention(scope, y, y, y, {}, 1, 0, false, false), c10::Error);
}

}  // namespace
}  // namespace iha::torch_ops
