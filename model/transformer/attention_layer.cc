#include "model/transformer/attention_layer.h"

#include "common/errors.h"
#include "model/transformer/iha_attention.h"
#include "model/transformer/softmax_attention.h"

namespace iha::model {

using checkpoint::AttentionKind;
using checkpoint::LayerSpec;

absl::StatusOr<std::unique_ptr<AttentionLayer>> MakeAttentionLayer(const checkpoint::ModelConfig& config, int64_t layer,
                                                                   const CacheOptions& cache, const Packer& packer,
                                                                   RopeTables& ropes) {
  const LayerSpec& spec = config.layers[static_cast<size_t>(layer)];
  const bool iha = spec.kind == AttentionKind::kIha;
  const bool modified = (spec.xsa != checkpoint::Xsa::kOff && !(iha && spec.xsa == checkpoint::Xsa::kPseudo)) ||
                        spec.gate != checkpoint::Gate::kOff || spec.knocking != checkpoint::Knocking::kOff;
  const bool softmax = spec.kind == AttentionKind::kGlobal || spec.kind == AttentionKind::kLocal;
  if (!(softmax || iha) || modified) {
    return Unimplemented(
        "attention layer {}: kind {}{} is not supported by the CPU backend; expected global, local or iha "
        "without modifiers",
        layer, NameOf(spec.kind), modified ? " with modifiers" : "");
  }
  if (iha) return IhaAttention::Make(config, layer, cache.type, cache.iha_form, packer, ropes);
  return SoftmaxAttention::Make(config, layer, cache.type, packer, ropes);
}

}  // namespace iha::model
