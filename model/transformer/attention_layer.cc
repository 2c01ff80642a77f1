#include "model/transformer/attention_layer.h"

#include "common/errors.h"
#include "model/transformer/iha_attention.h"
#include "model/transformer/softmax_attention.h"
#include "model/transformer/talking_heads_attention.h"

namespace iha::model {

using checkpoint::AttentionKind;

// The registry: one line a kind.
absl::StatusOr<std::unique_ptr<AttentionLayer>> MakeAttentionLayer(const checkpoint::ModelConfig& config, int64_t layer,
                                                                   const CacheOptions& cache, const Packer& packer,
                                                                   RopeTables& ropes) {
  const AttentionKind kind = config.layers[static_cast<size_t>(layer)].kind;
  switch (kind) {
    case AttentionKind::kGlobal:
    case AttentionKind::kLocal:
    case AttentionKind::kDiff:
    case AttentionKind::kDiffV2:
      return SoftmaxAttention::Make(config, layer, cache, packer, ropes);
    case AttentionKind::kIha:
      return IhaAttention::Make(config, layer, cache, packer, ropes);
    case AttentionKind::kTalkingHeads:
      return TalkingHeadsAttention::Make(config, layer, cache, packer, ropes);
  }
  return Internal("attention layer {}: kind {} has no layer", layer, static_cast<int>(kind));
}

}  // namespace iha::model
