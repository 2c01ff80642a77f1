#include "model/transformer/attention_layer.h"

#include "common/errors.h"
#include "model/transformer/softmax_attention.h"

namespace iha::model {

using checkpoint::AttentionKind;
using checkpoint::LayerSpec;

absl::StatusOr<std::unique_ptr<AttentionLayer>> MakeAttentionLayer(const checkpoint::ModelConfig& config, int64_t layer,
                                                                   kernels::StorageType kv_type, const Packer& packer,
                                                                   RopeTables& ropes) {
  const LayerSpec& spec = config.layers[static_cast<size_t>(layer)];
  const bool modified = spec.xsa != checkpoint::Xsa::kOff || spec.gate != checkpoint::Gate::kOff ||
                        spec.knocking != checkpoint::Knocking::kOff;
  const bool softmax = spec.kind == AttentionKind::kGlobal || spec.kind == AttentionKind::kLocal;
  if (!softmax || modified) {
    return Unimplemented(
        "attention layer {}: kind {}{} is not supported by the CPU backend; expected global or local "
        "without modifiers",
        layer, NameOf(spec.kind), modified ? " with modifiers" : "");
  }
  return SoftmaxAttention::Make(config, layer, kv_type, packer, ropes);
}

}  // namespace iha::model
