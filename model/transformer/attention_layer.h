// attention_layer.h: what one attention layer of a block does, whatever its kind.
//
// The layer owns its packed weights and a slice of every cache block. Forward appends the new tokens' keys and values
// and writes the o_proj output of each token. A new kind is one implementation here, its kernel under kernels/, and one
// line in MakeAttentionLayer. Thread: the backend's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/support/parallel_for.h"
#include "model/backend.h"
#include "model/checkpoint/config.h"
#include "model/checkpoint/cost.h"
#include "model/transformer/packing.h"
#include "model/transformer/rope_tables.h"
#include "model/transformer/step_tokens.h"

namespace iha::model {

class AttentionLayer {
 public:
  virtual ~AttentionLayer() = default;
  // Bytes of a cache block that this layer needs; a multiple of 64.
  virtual size_t cache_bytes() const = 0;
  // x: [tokens, hidden], normalised. out: [tokens, hidden], o_proj with its bias, written. cache_offset: of this
  // layer's slice inside each block.
  virtual void Forward(const StepTokens& tokens, size_t cache_offset, const float* x, float* out,
                       kernels::ParallelFor& parallel) = 0;
};

// How the layers of one backend keep their caches.
struct CacheOptions {
  kernels::StorageType type = kernels::StorageType::kF32;
  checkpoint::IhaCacheForm iha_form = checkpoint::IhaCacheForm::kByRule;
};

// InvalidArgument names the layer and what is not supported. `ropes` must outlive the layer.
absl::StatusOr<std::unique_ptr<AttentionLayer>> MakeAttentionLayer(const checkpoint::ModelConfig& config, int64_t layer,
                                                                   const CacheOptions& cache, const Packer& packer,
                                                                   RopeTables& ropes);

}  // namespace iha::model
