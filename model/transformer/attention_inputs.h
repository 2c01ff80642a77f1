// attention_inputs.h: how every kind of attention begins: q, k, v = x W^T + b, then knocking; the norms and rotations
// that most kinds share are separate steps.
//
// Rows of one step lie as [token][query heads, key heads, value heads] of head_dim floats. Value heads stay the token's
// own base values throughout (what XSA's output stage excludes). Thread: the backend's.
// Errors of Make: those of Checkpoint::ExpectTensor. Source: checkpoints.md, symbols and modifiers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/support/parallel_for.h"
#include "model/checkpoint/config.h"
#include "model/transformer/packing.h"
#include "model/transformer/rope_tables.h"

namespace iha::model {

class AttentionInputs {
 public:
  static absl::StatusOr<AttentionInputs> Make(const checkpoint::ModelConfig& config, int64_t layer,
                                              const Packer& packer);

  // Of Project.
  OpWork ProjectWork(size_t tokens) const;
  // Fills the rows from x [tokens, hidden].
  void Project(size_t tokens, const float* x, kernels::ParallelFor& parallel);
  // RMSNorm of every query and key head, where the layer norms before it mixes or rotates (pre_rope, pre_mix).
  void Norm(kernels::ParallelFor& parallel);
  // RoPE of query and key heads: each token by its position times `step`.
  void Rotate(std::span<const uint32_t> positions, uint32_t step, RopeTables& ropes, kernels::ParallelFor& parallel);

  size_t heads() const { return heads_; }
  size_t kv_heads() const { return kv_heads_; }
  size_t d() const { return d_; }
  size_t stride() const { return (heads_ + 2 * kv_heads_) * d_; }  // floats between tokens
  float* queries(size_t token = 0) { return rows_.data() + token * stride(); }
  float* keys(size_t token = 0) { return queries(token) + heads_ * d_; }
  float* values(size_t token = 0) { return keys(token) + kv_heads_ * d_; }

 private:
  AttentionInputs() = default;
  absl::Status LoadKnocking(const std::string& prefix, const Packer& packer);
  void Knock(kernels::ParallelFor& parallel);

  size_t heads_ = 0, kv_heads_ = 0, d_ = 0, hidden_ = 0;
  checkpoint::LayerSpec spec_;
  float norm_eps_ = 0;
  bool norm_plus_one_ = false;
  Linear qkv_;
  // kLinear: of q, k, v; kMlp: up, gate, down of v.
  std::vector<kernels::PackedWeights> knocking_;
  std::vector<float> q_norm_, k_norm_;  // empty: no norm here
  // Of one step.
  size_t tokens_ = 0;
  std::vector<float> rows_, scratch_;
};

// The window of a layer as the kernels take it, in its unit; 0 = none. Longer than any sequence is as good as
// UINT32_MAX.
uint32_t WindowOf(const checkpoint::LayerSpec& spec);
// The pairing of a layer as the kernels name it.
kernels::RopePairing PairingOf(const checkpoint::LayerSpec& spec);

}  // namespace iha::model
