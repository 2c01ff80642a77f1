// torch_attention.h: one attention layer of any kind as plain LibTorch operations, written from docs/checkpoints.md.
//
// Heads are [tokens, heads, d]; for iha "tokens" are virtual tokens n * P + j once mixed. The cache holds what
// attention reads: rotated keys and values, mixed ones for iha. Linear algebra runs over all tokens of the step,
// attention a sequence at a time. Errors: Torch's exceptions.
#pragma once

#include <cstdint>

#include "model/torch/torch_step.h"
#include "model/torch/torch_weights.h"

namespace iha::model::torch {

class Attention {
 public:
  Attention(const Weights& weights, int64_t layer);

  // Floats of keys and of values a token leaves in the cache.
  int64_t k_width() const;
  int64_t v_width() const;
  // x: [tokens, hidden], normalised. Appends the step's keys and values to the cache; returns o_proj's output.
  at::Tensor Forward(const at::Tensor& x, Step& step, LayerCache& cache) const;

 private:
  struct Heads {
    at::Tensor q, k, v;
  };
  Heads Project(const at::Tensor& x) const;
  void Knock(Heads& heads) const;
  void Mix(Heads& heads) const;
  at::Tensor Rotate(const at::Tensor& x, const Rotation& rotation) const;
  at::Tensor Attend(const Heads& heads, Step& step, const LayerCache& cache) const;
  at::Tensor Softmax(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Visible& visible) const;
  at::Tensor TalkingHeads(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Visible& visible) const;
  at::Tensor Combine(const at::Tensor& attended, const at::Tensor& x) const;

  const checkpoint::LayerSpec spec_;
  const int64_t heads_, kv_heads_, output_heads_, d_;
  const double scale_;
  LinearLayer q_, k_, v_, o_;
  Norm q_norm_, k_norm_;                    // qk_norm
  at::Tensor alpha_q_, alpha_k_, alpha_v_;  // iha: [target head, pseudo, source head]
  at::Tensor collapse_;                     // iha: [H, P] or [H, H, P]
  at::Tensor pre_, post_;                   // talking_heads, fp32
  double lambda_ = 0;                       // diff
  Norm sub_norm_;                           // diff
  at::Tensor lambda_proj_;                  // diff_v2
  at::Tensor gate_;                         // modifiers
  at::Tensor knock_[3];                     // linear: q, k, v; mlp: up, gate, down
};

}  // namespace iha::model::torch
