#include "model/checkpoint/config.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "common/canonical.h"
#include "common/errors.h"
#include "common/json.h"
#include "common/status_macros.h"
#include "model/checkpoint/config_parts.h"
#include "model/checkpoint/families.h"
#include "model/checkpoint/json_fields.h"

namespace iha::checkpoint {
namespace {

using nlohmann::json;

// Far above any model, and small enough that the parameters of kMaxLayers layers stay below 2^63.
constexpr int64_t kMaxVocab = int64_t{1} << 24;
constexpr int64_t kMaxHidden = int64_t{1} << 20;
constexpr int64_t kMaxInner = int64_t{1} << 22;
constexpr int64_t kMaxHeads = int64_t{1} << 14;
constexpr int64_t kMaxHeadDim = 512;  // kernels/attention/attention.h
constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxPositions = int64_t{1} << 40;

Activation ReadActivation(FieldReader& fields, const FamilyRow& family) {
  // Names as transformers' ACT2FN has them.
  static constexpr std::pair<const char*, Activation> kNames[] = {
      {"silu", Activation::kSilu},         {"swish", Activation::kSilu},
      {"gelu", Activation::kGeluErf},      {"gelu_pytorch_tanh", Activation::kGeluTanh},
      {"gelu_new", Activation::kGeluTanh}, {"relu", Activation::kRelu},
  };
  const json* value = fields.Find(family.activation_field);
  if (value == nullptr) return family.activation;
  for (const auto& [name, activation] : kNames) {
    if (*value == name) return activation;
  }
  fields.Fail(family.activation_field,
              fmt::format("is {}, expected silu, swish, gelu, gelu_pytorch_tanh, gelu_new or relu", ShownJson(*value)));
  return family.activation;
}

void ReadSizes(FieldReader& fields, const FamilyRow& family, ModelConfig* config) {
  config->vocab_size = fields.Int("vocab_size", family.vocab_size, 1, kMaxVocab);
  config->hidden_size = fields.Int("hidden_size", family.hidden_size, 1, kMaxHidden);
  config->intermediate_size = fields.Int("intermediate_size", family.intermediate_size, 1, kMaxInner);
  config->num_heads = fields.Int("num_attention_heads", family.num_heads, 1, kMaxHeads);
  config->context_tokens = fields.Int("max_position_embeddings", family.max_positions, 1, kMaxPositions);
  config->rms_norm_eps = fields.Number("rms_norm_eps", family.rms_norm_eps, 0, 1);
  // Absent: the class default; null: as many as query heads.
  const bool has_kv = fields.Has("num_key_value_heads");
  const int64_t kv_default = has_kv || family.num_kv_heads == 0 ? config->num_heads : family.num_kv_heads;
  config->num_kv_heads = fields.Find("num_key_value_heads") == nullptr
                             ? kv_default
                             : fields.Int("num_key_value_heads", std::nullopt, 1, kMaxHeads);
  if (fields.ok() && config->num_heads % config->num_kv_heads != 0) {
    fields.Fail("num_key_value_heads", fmt::format("is {}, expected a divisor of num_attention_heads {}",
                                                   config->num_kv_heads, config->num_heads));
  }
  if (fields.Find("head_dim") != nullptr) {
    config->head_dim = fields.Int("head_dim", std::nullopt, 2, kMaxHeadDim);
  } else if (!fields.Has("head_dim") && family.head_dim != 0) {
    config->head_dim = family.head_dim;
  } else if (config->hidden_size % config->num_heads != 0) {
    fields.Fail("head_dim", fmt::format("is missing, and hidden_size {} is no multiple of num_attention_heads {}",
                                        config->hidden_size, config->num_heads));
  } else {
    config->head_dim = config->hidden_size / config->num_heads;
  }
  if (fields.ok() && config->head_dim > kMaxHeadDim) {  // hidden_size / num_attention_heads
    fields.Fail("head_dim", fmt::format("is {} (hidden_size {} / num_attention_heads {}), expected at most {}",
                                        config->head_dim, config->hidden_size, config->num_heads, kMaxHeadDim));
  } else if (fields.ok() && config->head_dim % 2 != 0) {
    fields.Fail("head_dim", fmt::format("is {}, expected an even number (RoPE turns pairs)", config->head_dim));
  }
}

// Per layer: does it slide? `layer_types` wins over the family's older fields, as in transformers (for which a Mistral
// that has them is a Ministral, the same model otherwise).
std::vector<bool> ReadSlidingLayers(FieldReader& fields, const FamilyRow& family, int64_t layers, bool* any_window) {
  std::vector<bool> sliding(static_cast<size_t>(layers), false);
  const bool switched_on = family.window_rule != WindowRule::kFromLayer || fields.Bool("use_sliding_window", false);
  *any_window = family.window_rule != WindowRule::kNever && switched_on;
  if (family.window_rule == WindowRule::kNever) return sliding;
  if (family.window_rule == WindowRule::kAllLayers) {
    sliding.assign(sliding.size(), true);
  } else if (family.window_rule == WindowRule::kFromLayer) {
    const int64_t first = fields.Int("max_window_layers", 28, 0, kMaxLayers * kMaxLayers);
    for (int64_t l = 0; l < layers; ++l) sliding[static_cast<size_t>(l)] = switched_on && l >= first;
  } else {
    const char* name = fields.Has("sliding_window_pattern") ? "sliding_window_pattern" : "_sliding_window_pattern";
    const int64_t pattern = fields.Int(name, 6, 1, kMaxLayers * kMaxLayers);
    fields.Ignore("_sliding_window_pattern");
    for (int64_t l = 0; l < layers; ++l) sliding[static_cast<size_t>(l)] = (l + 1) % pattern != 0;
  }
  const json* types = fields.Find("layer_types");
  if (types == nullptr) return sliding;
  if (!types->is_array() || types->size() != sliding.size()) {
    fields.Fail("layer_types",
                fmt::format("has {} entries, expected a list of num_hidden_layers {}", types->size(), layers));
    return sliding;
  }
  for (size_t l = 0; l < sliding.size(); ++l) {
    sliding[l] = (*types)[l] == "sliding_attention";
    if (!sliding[l] && (*types)[l] != "full_attention") {
      fields.Fail(fmt::format("layer_types[{}]", l),
                  fmt::format("is {}, expected full_attention or sliding_attention", ShownJson((*types)[l])));
    }
  }
  return sliding;
}

void ReadLayers(FieldReader& fields, const FamilyRow& family, ModelConfig* config) {
  const int64_t layers = fields.Int("num_hidden_layers", family.num_layers, 1, kMaxLayers);
  bool windows_on = false;
  const std::vector<bool> sliding = ReadSlidingLayers(fields, family, layers, &windows_on);
  int64_t window = 0;  // none
  if (family.window_rule != WindowRule::kNever) {
    const bool absent = !fields.Has("sliding_window");
    if (fields.Find("sliding_window") != nullptr) window = fields.Int("sliding_window", std::nullopt, 1, kMaxPositions);
    if (absent) window = family.sliding_window;
    if (!windows_on) window = 0;
  }
  for (size_t l = 0; l < sliding.size(); ++l) {
    LayerSpec layer;
    layer.qk_norm = family.qk_norm ? QkNorm::kPreRope : QkNorm::kNone;
    if (sliding[l] && window > 0) {
      layer.kind = AttentionKind::kLocal;
      layer.window = Window{WindowUnit::kToken, window};
    } else if (sliding[l] && fields.Find("layer_types") != nullptr) {
      // Without layer_types, Mistral means "no window" by null.
      fields.Fail("sliding_window", fmt::format("is absent, null or off, but layer_types[{}] is sliding_attention", l));
    } else if (sliding[l] && family.gemma) {
      fields.Fail("sliding_window", fmt::format("is null, but layer {} slides: expected a number of tokens", l));
    }
    config->layers.push_back(layer);
  }
}

// Gives each layer its RoPE; equal ones are stored once, in order of use.
void AssignRopes(FieldReader& fields, const std::vector<bool>& slides, const RopePair& pair, ModelConfig* config) {
  for (size_t l = 0; l < config->layers.size(); ++l) {
    const std::optional<RopeSpec>& spec = slides[l] ? pair.sliding : pair.full;
    if (!spec.has_value()) {
      fields.Fail("rope_parameters",
                  fmt::format("has no {}, which layer {} is", slides[l] ? "sliding_attention" : "full_attention", l));
      return;
    }
    size_t index = 0;
    while (index < config->ropes.size() && config->ropes[index] != *spec) ++index;
    if (index == config->ropes.size()) config->ropes.push_back(*spec);
    config->layers[l].rope = static_cast<int32_t>(index);
  }
}

void ReadFamilySpecifics(FieldReader& fields, const FamilyRow& family, ModelConfig* config) {
  const bool attention_bias = family.reads_attention_bias && fields.Bool("attention_bias", false);
  config->qkv_bias = family.always_qkv_bias || attention_bias;
  config->o_bias = attention_bias;
  config->mlp_bias = family.reads_mlp_bias && fields.Bool("mlp_bias", false);
  config->tied_embeddings = fields.Bool("tie_word_embeddings", family.tied_embeddings);
  config->activation = ReadActivation(fields, family);
  double scale_of = static_cast<double>(config->head_dim);
  if (family.gemma) {
    scale_of = fields.Number("query_pre_attn_scalar", 256, 0, 1e9);
    config->norm_plus_one = true;
    config->sandwich_norms = true;
    config->embedding_scale = std::sqrt(static_cast<double>(config->hidden_size));
    for (const char* field : {"attn_logit_softcapping", "final_logit_softcapping"}) {
      if (fields.Find(field) != nullptr) fields.Fail(field, "is set, expected null: soft-capping is not supported");
    }
    if (fields.Find("use_bidirectional_attention") != nullptr && fields.Bool("use_bidirectional_attention", false)) {
      fields.Fail("use_bidirectional_attention", "is true, expected false: only causal models are scored");
    }
  }
  config->attention_scale = 1.0 / std::sqrt(scale_of);
}

// Fields that some configs carry and whose other values would change the function.
void RefuseUnsupported(FieldReader& fields) {
  if (const json* value = fields.Find("quantization_config"); value != nullptr) {
    fields.Fail("quantization_config",
                "is set, expected none: quantised weights are not supported; store F32, F16 or BF16");
  }
  if (fields.Find("partial_rotary_factor") != nullptr && fields.Number("partial_rotary_factor", 1.0, 0, 1) != 1.0) {
    fields.Fail("partial_rotary_factor", "is not 1: rotating a part of the head is not supported");
  }
  for (const char* field : {"use_mrope", "is_encoder_decoder", "add_cross_attention"}) {
    if (fields.Find(field) != nullptr && fields.Bool(field, false)) {
      fields.Fail(field, "is true, expected false: not supported");
    }
  }
}

std::string ReadStoredDtype(FieldReader& fields) {
  const json *old_name = fields.Find("torch_dtype"), *new_name = fields.Find("dtype");
  if (old_name != nullptr && new_name != nullptr && *old_name != *new_name) {
    fields.Fail("torch_dtype",
                fmt::format("is {}, but dtype is {}: remove one", ShownJson(*old_name), ShownJson(*new_name)));
  }
  const json* value = new_name != nullptr ? new_name : old_name;
  if (value != nullptr && !value->is_string()) {
    fields.Fail(new_name != nullptr ? "dtype" : "torch_dtype",
                fmt::format("is {}, expected the name of a type, as bfloat16", ShownJson(*value)));
  }
  return value == nullptr ? "" : ShownJson(*value);
}

absl::StatusOr<const FamilyRow*> ReadFamily(FieldReader& fields) {
  const std::string type = fields.String("model_type", std::nullopt);
  if (!fields.ok()) return fields.status();
  const FamilyRow* family = FindFamily(type);
  if (family == nullptr) {
    return InvalidArgument("config.json: model_type is {}, which is unknown (expected one of: {})", Shown(type),
                           KnownFamilies());
  }
  const json* classes = fields.Find("architectures");
  if (classes == nullptr) return family;
  if (!classes->is_array()) {
    return InvalidArgument("config.json: architectures is {}, expected a list of class names", TypedJson(*classes));
  }
  if (!classes->empty() && (*classes)[0] != family->architecture) {
    return InvalidArgument("config.json: architectures[0] is {}, expected {} for model_type {}",
                           ShownJson((*classes)[0]), family->architecture, type);
  }
  return family;
}

}  // namespace

std::string UnknownFieldWarning(std::string_view path, std::string_view field) {
  return fmt::format("{}{} is not known here and has no effect", path, Shown(field));
}

std::vector<int32_t> ReadTokenIds(FieldReader& fields, const char* field, const std::optional<int32_t>& fallback) {
  std::vector<int32_t> ids;
  const json* value = fields.Find(field);
  if (value == nullptr) {
    if (!fields.Has(field) && fallback.has_value()) ids.push_back(*fallback);
    return ids;
  }
  const json list = value->is_array() ? *value : json::array({*value});
  for (const json& item : list) {
    const std::optional<int64_t> id = JsonInteger(item);
    if (!id.has_value() || *id < 0 || *id > INT32_MAX) {
      fields.Fail(field, fmt::format("is {}, expected a token id, a list of them, or null", TypedJson(*value)));
      return {};
    }
    ids.push_back(static_cast<int32_t>(*id));
  }
  return ids;
}

absl::StatusOr<ModelConfig> ParseModelConfig(std::string_view json_text) {
  IHA_ASSIGN_OR_RETURN(const json root, ParseJsonObject(json_text, "config.json"));
  FieldReader fields(root, "config.json: ");
  IHA_ASSIGN_OR_RETURN(const FamilyRow* family, ReadFamily(fields));

  ModelConfig config;
  config.family = family->family;
  ReadSizes(fields, *family, &config);
  ReadLayers(fields, *family, &config);
  ReadFamilySpecifics(fields, *family, &config);
  RefuseUnsupported(fields);
  config.stored_dtype = ReadStoredDtype(fields);
  const std::vector<int32_t> bos = ReadTokenIds(fields, "bos_token_id", family->bos);
  if (!bos.empty()) config.bos_token_id = bos.front();
  config.eos_token_ids = ReadTokenIds(fields, "eos_token_id", family->eos);
  IHA_RETURN_IF_ERROR(fields.status());

  std::vector<bool> slides;
  for (const LayerSpec& layer : config.layers) slides.push_back(layer.kind == AttentionKind::kLocal);
  IHA_ASSIGN_OR_RETURN(const RopePair ropes, ParseRopes(fields, *family, config.context_tokens, &config.warnings));
  AssignRopes(fields, slides, ropes, &config);

  if (fields.Has("iha_eval") && fields.Find("iha_eval") == nullptr) {
    fields.Fail("iha_eval", "is null, expected an object (or no such field)");
  }
  if (const json* block = fields.Find("iha_eval"); block != nullptr && fields.ok()) {
    if (config.family != Family::kLlama) {
      return InvalidArgument("config.json: iha_eval needs model_type llama, found {}", family->model_type);
    }
    IHA_RETURN_IF_ERROR(ParseIhaEval(*block, &config));
  }
  IHA_RETURN_IF_ERROR(fields.status());
  IHA_RETURN_IF_ERROR(CheckPositions(config));
  for (const std::string& field : fields.Unknown()) {
    if (IsHarmlessField(field)) continue;
    config.unknown_fields.push_back(field);
    config.warnings.push_back(UnknownFieldWarning(fields.path(), field));
  }
  return config;
}

absl::StatusOr<GenerationConfig> ParseGenerationConfig(std::string_view json_text) {
  IHA_ASSIGN_OR_RETURN(const json root, ParseJsonObject(json_text, "generation_config.json"));
  FieldReader fields(root, "generation_config.json: ");
  GenerationConfig config;
  const std::vector<int32_t> bos = ReadTokenIds(fields, "bos_token_id", std::nullopt);
  if (!bos.empty()) config.bos_token_id = bos.front();
  config.eos_token_ids = ReadTokenIds(fields, "eos_token_id", std::nullopt);
  for (const char* field : {"pad_token_id", "transformers_version", "_from_model_config"}) fields.Ignore(field);
  IHA_RETURN_IF_ERROR(fields.status());
  for (const std::string& field : fields.Unknown()) {
    config.ignored.push_back(fmt::format("{}={}", Shown(field), ShownJson(root[field])));
  }
  return config;
}

}  // namespace iha::checkpoint
