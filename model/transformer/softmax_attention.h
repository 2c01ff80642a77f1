// softmax_attention.h: causal softmax attention, MHA or GQA, with an optional window: kinds `global` and `local`.
//
// q, k, v = x W^T + b; optional RMSNorm of each q and k head; RoPE; softmax over the visible keys (docs/contracts/
// numerics.md); o_proj. Tensor names and meaning: Hugging Face Llama, Mistral, Qwen2, Qwen3, Gemma 3.
#pragma once

#include "kernels/attention/attention.h"
#include "model/transformer/attention_layer.h"

namespace iha::model {

class SoftmaxAttention final : public AttentionLayer {
 public:
  static absl::StatusOr<std::unique_ptr<AttentionLayer>> Make(const checkpoint::ModelConfig& config, int64_t layer,
                                                              kernels::StorageType kv_type, const Packer& packer,
                                                              RopeTables& ropes);

  size_t cache_bytes() const override { return kv_heads_ * head_bytes_; }
  void Forward(const StepTokens& tokens, size_t cache_offset, const float* x, float* out,
               kernels::ParallelFor& parallel) override;

 private:
  SoftmaxAttention(const checkpoint::ModelConfig& config, int64_t layer, kernels::StorageType kv_type,
                   RopeTables& ropes);

  size_t qkv_stride() const { return (heads_ + 2 * kv_heads_) * d_; }
  void NormHeads(size_t tokens, kernels::ParallelFor& parallel);
  void Rotate(const StepTokens& tokens, kernels::ParallelFor& parallel);
  void Append(const StepTokens& tokens, size_t cache_offset, kernels::ParallelFor& parallel);
  void Attend(const StepTokens& tokens, size_t cache_offset, kernels::ParallelFor& parallel);

  const size_t heads_, kv_heads_, d_, hidden_;
  const checkpoint::LayerSpec spec_;
  const float scale_, norm_eps_;
  const bool norm_plus_one_;
  const kernels::KvLayout layout_;
  const size_t head_bytes_;
  RopeTables& ropes_;
  Linear qkv_, o_;
  std::vector<float> q_norm_, k_norm_;  // empty: no norm
  // Scratch of one step.
  std::vector<float> projected_;  // [tokens][q heads, k heads, v heads]
  std::vector<float> attended_;   // [tokens][heads * d]
  std::vector<kernels::AttentionRow> rows_;
};

}  // namespace iha::model
