#include "bench/torch_rival.h"

#ifdef IHA_HAVE_TORCH
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <torch/headeronly/version.h>
#else
#include <cstdlib>
#endif

namespace iha::bench {

#ifdef IHA_HAVE_TORCH
namespace {

at::Tensor Random(at::IntArrayRef shape, bool bf16) {
  return at::rand(shape).sub(0.5).to(bf16 ? at::kBFloat16 : at::kFloat);
}

}  // namespace

std::string TorchVersion() { return std::string("LibTorch ") + TORCH_VERSION; }

std::function<void()> TorchLinear(bool bf16, size_t k, size_t n, size_t m, int threads) {
  const auto size = [](size_t value) { return static_cast<int64_t>(value); };
  at::set_num_threads(threads);
  // Into memory that is there already, as ours: a fresh result would be paid for in page faults.
  return [a = Random({size(m), size(k)}, bf16), w = Random({size(n), size(k)}, bf16),
          out = Random({size(m), size(n)}, bf16)]() mutable {
    const c10::InferenceMode inference;
    at::linear_out(out, a, w);
  };
}

std::function<void()> TorchAttention(bool bf16, size_t d, size_t tokens, size_t heads, bool prefill, int threads) {
  const auto size = [](size_t value) { return static_cast<int64_t>(value); };
  at::set_num_threads(threads);
  return [q = Random({1, size(heads), size(prefill ? tokens : 1), size(d)}, bf16),
          k = Random({1, 1, size(tokens), size(d)}, bf16), v = Random({1, 1, size(tokens), size(d)}, bf16), heads,
          prefill] {
    const c10::InferenceMode inference;
    at::scaled_dot_product_attention(q, k, v, {}, 0.0, prefill, std::nullopt, heads > 1);
  };
}
#else
std::string TorchVersion() { return ""; }
std::function<void()> TorchLinear(bool, size_t, size_t, size_t, int) { std::abort(); }
std::function<void()> TorchAttention(bool, size_t, size_t, size_t, bool, int) { std::abort(); }
#endif

}  // namespace iha::bench
