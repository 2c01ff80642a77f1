// talking_heads_attention.h: kind `talking_heads`: heads mix their scores before the softmax and their weights after.
//
// Inputs; pre_rope norm; RoPE; kernels/talking_heads over the paged cache, laid out as for softmax attention; output.
// Thread: the backend's. Errors of Make: those of Checkpoint::ExpectTensor. Source: checkpoints.md, kinds.
#pragma once

#include "kernels/talking_heads/talking_heads.h"
#include "model/transformer/attention_layer.h"
#include "model/transformer/attention_output.h"

namespace iha::model {

class TalkingHeadsAttention final : public AttentionLayer {
 public:
  static absl::StatusOr<std::unique_ptr<AttentionLayer>> Make(const checkpoint::ModelConfig& config, int64_t layer,
                                                              const CacheOptions& cache, const Packer& packer,
                                                              RopeTables& ropes);

  size_t cache_bytes() const override { return shape_.kv_heads * shape_.layout.bytes(); }
  void Forward(const StepTokens& tokens, size_t cache_offset, const float* x, float* out,
               kernels::ParallelFor& parallel) override;

 private:
  TalkingHeadsAttention(AttentionInputs inputs, AttentionOutput output, const kernels::TalkingHeadsShape& shape,
                        std::vector<float> pre, std::vector<float> post, RopeTables& ropes)
      : inputs_(std::move(inputs)),
        output_(std::move(output)),
        pre_(std::move(pre)),
        post_(std::move(post)),
        shape_(shape),
        ropes_(ropes) {
    shape_.pre = pre_.data();
    shape_.post = post_.data();
  }

  OpWork AttentionWork(const StepTokens& tokens) const;

  AttentionInputs inputs_;
  AttentionOutput output_;
  const std::vector<float> pre_, post_;  // [H][H]
  kernels::TalkingHeadsShape shape_;
  RopeTables& ropes_;
  std::vector<float> y_;  // of one step: [tokens][H][d]
};

}  // namespace iha::model
