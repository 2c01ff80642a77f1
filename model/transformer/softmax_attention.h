// softmax_attention.h: causal softmax attention, MHA or GQA, with an optional window, and the differential kinds on top
// of it: `global`, `local`, `diff_v2`, `diff`.
//
// Inputs; pre_rope norm; RoPE; softmax over the visible keys (docs/contracts/numerics.md); for the differential kinds
// the difference of each head pair; output. Tensor names and meaning: Hugging Face Llama, Mistral, Qwen2, Qwen3,
// Gemma 3; checkpoints.md, kinds.
#pragma once

#include "model/transformer/attention_layer.h"
#include "model/transformer/attention_output.h"
#include "model/transformer/softmax_core.h"

namespace iha::model {

class SoftmaxAttention final : public AttentionLayer {
 public:
  static absl::StatusOr<std::unique_ptr<AttentionLayer>> Make(const checkpoint::ModelConfig& config, int64_t layer,
                                                              const CacheOptions& cache, const Packer& packer,
                                                              RopeTables& ropes);

  size_t cache_bytes() const override { return core_.cache_bytes(); }
  void Forward(const StepTokens& tokens, size_t cache_offset, const float* x, float* out,
               kernels::ParallelFor& parallel) override;

 private:
  // What turns the outputs of a head pair into one.
  enum class Pairs { kNone, kGated, kNormed };
  struct Difference {
    Pairs pairs = Pairs::kNone;
    Linear lambda;  // kGated: lambda_proj
    float lambda_value = 0, eps = 0, scale = 1;
    std::vector<float> norm;  // kNormed: subln
  };
  static absl::StatusOr<Difference> LoadDifference(const checkpoint::ModelConfig& config, int64_t layer,
                                                   const Packer& packer);

  SoftmaxAttention(AttentionInputs inputs, const SoftmaxCoreShape& core, Difference difference, AttentionOutput output,
                   size_t hidden, RopeTables& ropes)
      : inputs_(std::move(inputs)),
        core_(core),
        difference_(std::move(difference)),
        output_(std::move(output)),
        hidden_(hidden),
        ropes_(ropes) {}

  // The differences of y_'s pairs, for a kind that has them.
  float* Combine(size_t tokens, const float* x, kernels::ParallelFor& parallel);

  AttentionInputs inputs_;
  SoftmaxCore core_;
  Difference difference_;
  AttentionOutput output_;
  const size_t hidden_;
  RopeTables& ropes_;
  // Scratch of one step.
  std::vector<float> y_;  // [tokens][heads][d_v]
  std::vector<float> lambda_logits_, combined_;
};

}  // namespace iha::model
