// The block `iha_eval`: one attention spec a layer, nothing defaulted, nothing unknown.
#include <cmath>
#include <nlohmann/json.hpp>

#include "common/errors.h"
#include "common/status_macros.h"
#include "kernels/support/exact_math.h"
#include "model/checkpoint/config_parts.h"

namespace iha::checkpoint {
namespace {

using nlohmann::json;

constexpr int64_t kMaxWindow = int64_t{1} << 40;
constexpr int64_t kMaxPseudoHeads = 4096;
constexpr int64_t kMaxDiffHeadDim = 256;  // its values are twice as wide, and attention takes up to 512
constexpr double kMaxLambdaInit = 1000;   // it belongs near 1

const std::vector<const char*> kKinds{"global", "local", "iha", "talking_heads", "diff", "diff_v2"};

template <class Enum>
Enum Pick(FieldReader& fields, const char* field, const std::vector<const char*>& names) {
  return static_cast<Enum>(fields.Choice(field, names, std::nullopt));
}

// null or a number of tokens; the field itself must be there.
std::optional<Window> ReadTokenWindow(FieldReader& fields) {
  if (fields.Has("window") && fields.Find("window") == nullptr) return std::nullopt;
  if (!fields.Has("window")) {
    fields.Fail("window", "is missing (expected null or a number of tokens)");
    return std::nullopt;
  }
  return Window{WindowUnit::kToken, fields.Int("window", std::nullopt, 1, kMaxWindow)};
}

std::optional<Window> ReadIhaWindow(FieldReader& fields, IhaMask mask) {
  constexpr const char* kExpected = "null or {\"unit\": \"token\" or \"virtual\", \"size\": n}";
  const json* value = fields.Find("window");
  if (value == nullptr) {
    if (!fields.Has("window")) fields.Fail("window", fmt::format("is missing (expected {})", kExpected));
    return std::nullopt;
  }
  if (!value->is_object()) {
    fields.Fail("window", fmt::format("is {}, expected {}", ShownJson(*value), kExpected));
    return std::nullopt;
  }
  FieldReader inner(*value, fields.path() + "window.");
  Window window;
  window.unit = Pick<WindowUnit>(inner, "unit", {"token", "virtual"});
  window.size = inner.Int("size", std::nullopt, 1, kMaxWindow);
  for (const std::string& name : inner.Unknown()) inner.Fail(Shown(name), "is unknown (expected unit and size)");
  if (inner.ok() && window.unit == WindowUnit::kVirtual && mask != IhaMask::kFlatCausal) {
    fields.Fail("window", "has unit virtual with mask token_causal, expected unit token, or mask flat_causal");
  }
  fields.Merge(inner.status());
  return window;
}

void ReadIha(FieldReader& fields, const ModelConfig& config, LayerSpec* layer) {
  layer->pseudo_heads = fields.Int("pseudo_heads", std::nullopt, 1, kMaxPseudoHeads);
  layer->alpha_layout = Pick<AlphaLayout>(fields, "alpha_layout", {"source_target_pseudo", "target_pseudo_source"});
  layer->collapse = Pick<CollapseKind>(fields, "collapse", {"per_head", "global"});
  layer->mask = Pick<IhaMask>(fields, "mask", {"flat_causal", "token_causal"});
  layer->rope_positions = Pick<IhaPositions>(fields, "rope_positions", {"virtual", "token"});
  layer->window = ReadIhaWindow(fields, layer->mask);
  layer->qk_norm =
      std::vector{QkNorm::kNone, QkNorm::kPreMix,
                  QkNorm::kPostMix}[fields.Choice("qk_norm", {"none", "pre_mix", "post_mix"}, std::nullopt)];
  if (fields.ok() && config.num_kv_heads != config.num_heads) {
    fields.Merge(InvalidArgument(
        "config.json: num_key_value_heads is {}, but {}kind iha needs as many as num_attention_heads {}: expand them "
        "with iha-eval upcycle --expand-kv",
        config.num_kv_heads, fields.path().substr(std::string_view("config.json: ").size()), config.num_heads));
  }
}

void ReadDiff(FieldReader& fields, const ModelConfig& config, size_t index, LayerSpec* layer) {
  layer->window = ReadTokenWindow(fields);
  const json* init = fields.Find("lambda_init");
  if (init != nullptr && *init == "depth") {
    layer->lambda_init = 0.8 - 0.6 * kernels::ExactExp(-0.3 * static_cast<double>(index));
  } else if (init != nullptr && init->is_number() && std::abs(init->get<double>()) <= kMaxLambdaInit) {
    layer->lambda_init = init->get<double>();
  } else if (!fields.Has("lambda_init")) {
    fields.Fail("lambda_init", "is missing (expected depth or a number)");
  } else {
    fields.Fail("lambda_init", fmt::format("is {}, expected depth or a number from -{} to {}",
                                           init ? ShownJson(*init) : "null", kMaxLambdaInit, kMaxLambdaInit));
  }
  layer->norm_eps = fields.Number("norm_eps", std::nullopt, 0, 1);
  if (!fields.ok()) return;
  if (config.head_dim > kMaxDiffHeadDim) {
    fields.Fail("kind",
                fmt::format("is diff, which needs head_dim of at most {}, found {}", kMaxDiffHeadDim, config.head_dim));
  } else if (config.num_heads % 2 != 0) {
    fields.Fail("kind", fmt::format("is diff, which needs an even num_attention_heads, found {}", config.num_heads));
  } else if (config.num_kv_heads != config.num_heads) {
    fields.Fail("kind", fmt::format("is diff, which needs num_key_value_heads = num_attention_heads, found {} and {}",
                                    config.num_kv_heads, config.num_heads));
  }
}

// global, local, talking_heads, diff_v2.
void ReadOrdinary(FieldReader& fields, const ModelConfig& config, LayerSpec* layer) {
  if (layer->kind == AttentionKind::kLocal) {
    layer->window = Window{WindowUnit::kToken, fields.Int("window", std::nullopt, 1, kMaxWindow)};
  } else if (layer->kind != AttentionKind::kGlobal) {
    layer->window = ReadTokenWindow(fields);
  }
  layer->qk_norm = Pick<QkNorm>(fields, "qk_norm", {"none", "pre_rope"});
  if (layer->kind == AttentionKind::kDiffV2 && fields.ok() && config.num_heads / config.num_kv_heads % 2 != 0) {
    fields.Fail("kind", fmt::format("is diff_v2, which needs an even number of query heads for each key head, found "
                                    "num_attention_heads {} and num_key_value_heads {}",
                                    config.num_heads, config.num_kv_heads));
  }
}

// Off unless the field is there.
template <class Enum>
Enum Modifier(FieldReader& fields, const char* field, const std::vector<const char*>& names) {
  if (!fields.Has(field)) return static_cast<Enum>(0);
  return static_cast<Enum>(1 + fields.Choice(field, names, std::nullopt));
}

void ReadModifiers(FieldReader& fields, LayerSpec* layer) {
  if (layer->kind == AttentionKind::kDiff) {
    for (const char* field : {"xsa", "gate", "knocking"}) {
      if (fields.Has(field)) fields.Fail(field, "is not allowed with kind diff: remove it");
    }
    return;
  }
  layer->xsa = Modifier<Xsa>(fields, "xsa", {"pseudo", "output"});
  layer->gate = Modifier<Gate>(fields, "gate", {"headwise", "elementwise"});
  layer->knocking = Modifier<Knocking>(fields, "knocking", {"linear", "mlp"});
  if (layer->xsa == Xsa::kPseudo && layer->kind != AttentionKind::kIha) {
    fields.Fail("xsa", "is pseudo, which only kind iha has; expected output");
  }
}

absl::StatusOr<LayerSpec> ParseLayer(const json& object, const std::string& path, const ModelConfig& config,
                                     size_t index) {
  if (!object.is_object()) return InvalidArgument("{} is {}, expected an object", path, ShownJson(object));
  FieldReader fields(object, path + ".");
  LayerSpec layer;
  layer.kind = Pick<AttentionKind>(fields, "kind", kKinds);
  if (!fields.ok()) return fields.status();
  layer.rope_pairing = Pick<RopePairing>(fields, "rope_pairing", {"half", "interleaved"});
  if (layer.kind == AttentionKind::kIha) {
    ReadIha(fields, config, &layer);
  } else if (layer.kind == AttentionKind::kDiff) {
    ReadDiff(fields, config, index, &layer);
  } else {
    ReadOrdinary(fields, config, &layer);
  }
  ReadModifiers(fields, &layer);
  for (const std::string& field : fields.Unknown()) {
    fields.Fail(Shown(field), fmt::format("is unknown for kind {}: remove it or mend its name", NameOf(layer.kind)));
  }
  if (!fields.ok()) return fields.status();
  layer.rope = config.layers[index].rope;
  return layer;
}

}  // namespace

absl::Status ParseIhaEval(const json& block, ModelConfig* config) {
  const std::string path = "config.json: iha_eval";
  if (!block.is_object()) return InvalidArgument("{} is {}, expected an object", path, ShownJson(block));
  FieldReader fields(block, path + ".");
  if (const json* version = fields.Find("version"); version == nullptr) {
    fields.Fail("version", "is missing (expected 1)");
  } else if (*version != 1) {
    fields.Fail("version", fmt::format("is {}, expected 1", TypedJson(*version)));
  }
  config->mlp = Pick<MlpKind>(fields, "mlp", {"gated", "plain"});
  const bool repeat = fields.Choice("pattern", {"per_layer", "repeat"}, std::nullopt) == 1;
  const json* list = fields.Find("attention");
  if (list == nullptr) {
    fields.Fail("attention", "is missing (expected a list of layers)");
  } else if (!list->is_array() || list->empty()) {
    fields.Fail("attention", fmt::format("is {}, expected a list of layers", ShownJson(*list)));
  } else if (!repeat && list->size() != config->layers.size()) {
    fields.Fail("attention", fmt::format("has {} layers, expected num_hidden_layers {} (pattern per_layer)",
                                         list->size(), config->layers.size()));
  }
  for (const std::string& field : fields.Unknown()) {
    fields.Fail(Shown(field), "is unknown (expected version, mlp, attention and pattern)");
  }
  IHA_RETURN_IF_ERROR(fields.status());
  // Specs that no layer uses are checked too: an error in them is a mistake all the same.
  const size_t checked = std::max(config->layers.size(), list->size());
  for (size_t i = 0; i < checked; ++i) {
    const size_t layer = std::min(i, config->layers.size() - 1), spec = i % list->size();
    IHA_ASSIGN_OR_RETURN(LayerSpec parsed,
                         ParseLayer((*list)[spec], fmt::format("{}.attention[{}]", path, spec), *config, layer));
    if (i < config->layers.size()) config->layers[i] = std::move(parsed);
  }
  config->has_iha_eval = true;
  return absl::OkStatus();
}

}  // namespace iha::checkpoint
