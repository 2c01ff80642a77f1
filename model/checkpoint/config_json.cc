#include "model/checkpoint/config_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/errors.h"

namespace iha::checkpoint {
namespace {

using nlohmann::ordered_json;

ordered_json RopeScalingJson(const RopeSpec& rope) {
  if (rope.scaling == RopeScaling::kNone) return nullptr;
  ordered_json json = {{"rope_type", NameOf(rope.scaling)}, {"factor", rope.factor}};
  if (rope.scaling == RopeScaling::kLlama3) {
    json["low_freq_factor"] = rope.low_freq_factor;
    json["high_freq_factor"] = rope.high_freq_factor;
    json["original_max_position_embeddings"] = rope.original_max_positions;
  } else if (rope.scaling == RopeScaling::kYarn) {
    json["original_max_position_embeddings"] = rope.original_max_positions;
    json["beta_fast"] = rope.beta_fast;
    json["beta_slow"] = rope.beta_slow;
    json["truncate"] = rope.truncate;
    json["attention_factor"] = rope.attention_factor;  // resolved: mscale has done its work
  }
  return json;
}

ordered_json TokenWindowJson(const LayerSpec& layer) {
  return layer.window.has_value() ? ordered_json(layer.window->size) : ordered_json(nullptr);
}

void AddIhaFields(const LayerSpec& layer, ordered_json& json) {
  json["pseudo_heads"] = layer.pseudo_heads;
  json["alpha_layout"] = NameOf(layer.alpha_layout);
  json["collapse"] = NameOf(layer.collapse);
  json["mask"] = layer.mask == IhaMask::kFlatCausal ? "flat_causal" : "token_causal";
  json["rope_positions"] = layer.rope_positions == IhaPositions::kVirtual ? "virtual" : "token";
  json["window"] = nullptr;
  if (layer.window.has_value()) {
    json["window"] = {{"unit", layer.window->unit == WindowUnit::kToken ? "token" : "virtual"},
                      {"size", layer.window->size}};
  }
}

ordered_json LayerJson(const LayerSpec& layer) {
  ordered_json json = {{"kind", NameOf(layer.kind)}};
  if (layer.kind == AttentionKind::kIha) {
    AddIhaFields(layer, json);
  } else if (layer.kind != AttentionKind::kGlobal) {
    json["window"] = TokenWindowJson(layer);
  }
  json["rope_pairing"] = layer.rope_pairing == RopePairing::kHalf ? "half" : "interleaved";
  if (layer.kind == AttentionKind::kDiff) {
    json["lambda_init"] = layer.lambda_init;
    json["norm_eps"] = layer.norm_eps;
    return json;
  }
  json["qk_norm"] = NameOf(layer.qk_norm);
  if (layer.xsa != Xsa::kOff) json["xsa"] = layer.xsa == Xsa::kPseudo ? "pseudo" : "output";
  if (layer.gate != Gate::kOff) json["gate"] = layer.gate == Gate::kHeadwise ? "headwise" : "elementwise";
  if (layer.knocking != Knocking::kOff) json["knocking"] = layer.knocking == Knocking::kLinear ? "linear" : "mlp";
  return json;
}

ordered_json BlockJson(const ModelConfig& config) {
  const std::vector<LayerSpec>& layers = config.layers;
  const bool equal = std::all_of(layers.begin(), layers.end(), [&](const LayerSpec& l) { return l == layers[0]; });
  ordered_json list = ordered_json::array();
  for (const LayerSpec& layer : layers) {
    list.push_back(LayerJson(layer));
    if (equal) break;
  }
  return {{"version", 1},
          {"mlp", config.mlp == MlpKind::kGated ? "gated" : "plain"},
          {"pattern", equal ? "repeat" : "per_layer"},
          {"attention", std::move(list)}};
}

absl::Status CheckExpressible(const ModelConfig& config) {
  if (config.family != Family::kLlama || config.norm_plus_one || config.sandwich_norms ||
      config.embedding_scale != 1.0) {
    return InvalidArgument(
        "config.json: model_type is {}, whose norms and embedding scale a config of type llama has no fields for; "
        "expected llama, mistral, qwen2 or qwen3",
        NameOf(config.family));
  }
  if (config.ropes.size() != 1) {
    return InvalidArgument("config.json: the layers use {} different RoPE settings, expected one for all",
                           config.ropes.size());
  }
  if (config.qkv_bias != config.o_bias) {
    return InvalidArgument("config.json: q, k and v {} biases and o {}, expected the same of all four",
                           config.qkv_bias ? "have" : "lack", config.o_bias ? "has" : "lacks");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> LlamaConfigJson(const ModelConfig& config) {
  if (absl::Status status = CheckExpressible(config); !status.ok()) return status;
  ordered_json json = {{"architectures", {"LlamaForCausalLM"}},
                       {"model_type", "llama"},
                       {"vocab_size", config.vocab_size},
                       {"hidden_size", config.hidden_size},
                       {"intermediate_size", config.intermediate_size},
                       {"num_hidden_layers", config.num_layers()},
                       {"num_attention_heads", config.num_heads},
                       {"num_key_value_heads", config.num_kv_heads},
                       {"head_dim", config.head_dim},
                       {"hidden_act", NameOf(config.activation)},
                       {"max_position_embeddings", config.context_tokens},
                       {"rms_norm_eps", config.rms_norm_eps},
                       {"rope_theta", config.ropes[0].theta},
                       {"rope_scaling", RopeScalingJson(config.ropes[0])},
                       {"attention_bias", config.qkv_bias},
                       {"mlp_bias", config.mlp_bias},
                       {"tie_word_embeddings", config.tied_embeddings},
                       {"bos_token_id", nullptr},
                       {"eos_token_id", nullptr}};
  if (config.bos_token_id.has_value()) json["bos_token_id"] = *config.bos_token_id;
  if (config.eos_token_ids.size() == 1) json["eos_token_id"] = config.eos_token_ids[0];
  if (config.eos_token_ids.size() > 1) json["eos_token_id"] = config.eos_token_ids;
  if (!config.stored_dtype.empty()) json["torch_dtype"] = config.stored_dtype;
  if (config.has_iha_eval) json["iha_eval"] = BlockJson(config);
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace iha::checkpoint
