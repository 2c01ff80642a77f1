// torch_rival.h: LibTorch's own operations over the shapes of a bench, measured in the same run as ours.
//
// Each function makes random inputs and returns what one iteration runs. `threads` counts for the whole process.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace iha::bench {

// "LibTorch 2.11.0", or "" in a build without it: then there are no rivals and nothing below may be called.
std::string TorchVersion();

// at::linear_out, [m, k] x [n, k]^T; bf16: activations, weights and results are bf16 (ours keeps activations fp32).
std::function<void()> TorchLinear(bool bf16, size_t k, size_t n, size_t m, int threads);
// at::scaled_dot_product_attention of `heads` query heads over one KV head; prefill: causal over all tokens, else one
// query a head.
std::function<void()> TorchAttention(bool bf16, size_t d, size_t tokens, size_t heads, bool prefill, int threads);

}  // namespace iha::bench
