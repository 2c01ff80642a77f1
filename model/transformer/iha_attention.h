// iha_attention.h: Interleaved Head Attention: H heads mixed into H x P pseudo heads, attention over N P virtual
// tokens, collapse back to H heads.
//
// Equations: paper, Algorithm 1 and Definition 3; order of operations: docs/contracts/numerics.md, NUM-9. The cache
// holds mixed keys and values (H P virtual key blocks of attention's layout per 64 tokens) or base ones ([K, V][64
// tokens][H][d], mixed again block by block while attention runs): the same bits, chosen by IhaCachesMixed. Scratch is
// O(step tokens x H P d), plus one key block a thread. Errors of Make: those of
// Checkpoint::ExpectTensor.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/iha_mix_rope/iha_mix_rope.h"
#include "model/checkpoint/cost.h"
#include "model/transformer/attention_layer.h"
#include "model/transformer/attention_output.h"

namespace iha::model {

class IhaAttention final : public AttentionLayer {
 public:
  static absl::StatusOr<std::unique_ptr<AttentionLayer>> Make(const checkpoint::ModelConfig& config, int64_t layer,
                                                              const CacheOptions& cache, const Packer& packer,
                                                              RopeTables& ropes);

  size_t cache_bytes() const override;
  void Forward(const StepTokens& tokens, size_t cache_offset, const float* x, float* out,
               kernels::ParallelFor& parallel) override;

 private:
  // Mixes the base rows of one cache block into one virtual key block of one head.
  class BlockMaker;

  IhaAttention(const checkpoint::ModelConfig& config, int64_t layer, const CacheOptions& cache, AttentionInputs inputs,
               AttentionOutput output, RopeTables& ropes);
  absl::Status Load(const checkpoint::ModelConfig& config, int64_t layer, const Packer& packer);

  size_t width() const { return shape_.heads * shape_.d; }
  bool post_mix() const { return spec_.qk_norm == checkpoint::QkNorm::kPostMix; }
  bool virtual_positions() const { return spec_.rope_positions == checkpoint::IhaPositions::kVirtual; }
  // Bytes of the base keys (or values) of a cache block.
  size_t base_bytes() const { return kernels::kKeyBlock * width() * kernels::StorageBytes(layout_.type); }

  OpWork MixWork(size_t tokens) const;
  OpWork CollapseWork(size_t tokens) const;
  void Collapse(size_t tokens, kernels::ParallelFor& parallel);
  void NormAndRotateHeads(const StepTokens& tokens, kernels::ParallelFor& parallel);
  void MixQueries(size_t tokens, kernels::ParallelFor& parallel);
  // Base keys and values of the step in the cache's type (keys of post_mix: fp32), the heads of a token adjacent.
  struct BaseRows {
    kernels::IhaSource keys, values;
  };
  BaseRows RoundBase(const StepTokens& tokens, kernels::ParallelFor& parallel);
  void AppendBase(const StepTokens& tokens, const BaseRows& base, kernels::ParallelFor& parallel);
  void Append(const StepTokens& tokens, size_t cache_offset, kernels::ParallelFor& parallel);
  void Attend(const StepTokens& tokens, size_t cache_offset, kernels::ParallelFor& parallel);
  kernels::IhaMix KeyMix(kernels::IhaSource source) const;
  kernels::IhaMix ValueMix(kernels::IhaSource source) const;
  kernels::AttentionRow RowOf(uint32_t position, uint32_t pseudo, float* row) const;

  const kernels::IhaShape shape_;
  const checkpoint::LayerSpec spec_;
  const bool mixed_cache_;
  const float scale_, norm_eps_;
  const bool norm_plus_one_;
  const kernels::RopePairing pairing_;
  const kernels::KvLayout layout_;  // of one virtual key block of one head
  RopeTables& ropes_;
  AttentionInputs inputs_;
  AttentionOutput output_;
  std::vector<float> alpha_q_, alpha_k_, alpha_v_;  // [target][pseudo][source]
  std::vector<float> collapse_;
  std::vector<float> q_norm_, k_norm_;          // post_mix
  std::vector<float> rotate_cos_, rotate_sin_;  // Rot_j: [P][d / 2], without the attention factor
  // Scratch of one step.
  std::vector<uint16_t> rounded_;    // bf16 caches: [tokens][k heads (post_mix: unused), v heads]
  RopeTable rope_table_{};           // post_mix
  std::vector<uint32_t> rope_rows_;  // post_mix, of each token: n P, or n
  std::vector<float> pseudo_;        // [tokens][H][P][d]: queries, then attention's outputs
  std::vector<float> pseudo_v_;      // the same of the values, for XSA
  std::vector<float> collapsed_;     // [tokens][H][d]
  std::vector<uint8_t*> slices_;
  std::vector<kernels::AttentionRow> rows_;
};

}  // namespace iha::model
