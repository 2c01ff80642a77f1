// The four spellings of RoPE settings in config.json.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "common/errors.h"
#include "common/status_macros.h"
#include "model/checkpoint/config_parts.h"

namespace iha::checkpoint {
namespace {

using nlohmann::json;

constexpr double kHuge = 1e12;
constexpr int64_t kMaxPositions = int64_t{1} << 40;
constexpr double kMaxAngle = 0x1p21;          // ExactSinCos, kernels/support/exact_math.h
constexpr double kMaxVirtualTokens = 0x1p32;  // the kernels' indices

RopeScaling ReadScaling(FieldReader& fields) {
  const json *type = fields.Find("rope_type"), *old_type = fields.Find("type");
  if (type != nullptr && old_type != nullptr && *type != *old_type) {
    fields.Fail("rope_type", fmt::format("is {}, but type is {}: keep one", ShownJson(*type), ShownJson(*old_type)));
  }
  if (type == nullptr) type = old_type;
  if (type == nullptr) return RopeScaling::kNone;
  for (const RopeScaling scaling :
       {RopeScaling::kNone, RopeScaling::kLinear, RopeScaling::kLlama3, RopeScaling::kYarn, RopeScaling::kDynamic}) {
    if (*type == NameOf(scaling)) return scaling;
  }
  fields.Fail(
      "rope_type",
      fmt::format("is {}, expected default, linear, llama3, yarn or dynamic; no other is supported", ShownJson(*type)));
  return RopeScaling::kNone;
}

// What config.json says outside the objects, for fields that they leave out.
struct Outer {
  double theta = 0;
  int64_t max_positions = 0;
  std::optional<int64_t> original_positions;
};

// Some configs carry the field outside (Phi 3 began it). transformers 5 lets that one win in a flat object and does not
// see it by layer type, transformers 4 never saw it: what they would not read alike is refused.
int64_t ReadOriginalPositions(FieldReader& fields, std::optional<int64_t> fallback, const Outer& outer) {
  constexpr const char* kField = "original_max_position_embeddings";
  const int64_t found = fields.Int(kField, fallback, 1, kMaxPositions);
  if (fields.ok() && outer.original_positions.has_value() && *outer.original_positions != found) {
    fields.Fail(kField,
                fmt::format("is {}, but {} outside says {}: remove one", found, kField, *outer.original_positions));
  }
  return found;
}

void ReadYarn(FieldReader& fields, bool flat, const Outer& outer, RopeSpec* spec) {
  const int64_t original = flat ? outer.original_positions.value_or(outer.max_positions) : outer.max_positions;
  spec->original_max_positions = ReadOriginalPositions(fields, original, outer);
  const auto optional_number = [&fields](const char* name, double fallback) {
    return fields.Find(name) == nullptr ? fallback : fields.Number(name, fallback, 0, kHuge);
  };
  spec->beta_fast = optional_number("beta_fast", 32);
  spec->beta_slow = optional_number("beta_slow", 1);
  spec->truncate = fields.Bool("truncate", true);
  const double automatic =
      YarnAttentionFactor(spec->factor, optional_number("mscale", 0), optional_number("mscale_all_dim", 0));
  spec->attention_factor = optional_number("attention_factor", automatic);
}

// One object: rope_scaling, rope_parameters (flat) or one of its layer types.
absl::StatusOr<RopeSpec> ParseSpec(const json& object, const std::string& path, bool flat, const Outer& outer,
                                   std::vector<std::string>* warnings) {
  if (!object.is_object()) return InvalidArgument("{} is {}, expected an object", path, ShownJson(object));
  FieldReader fields(object, path + ".");
  RopeSpec spec;
  spec.theta = fields.Number("rope_theta", outer.theta, 1, kHuge);
  spec.scaling = ReadScaling(fields);
  if (spec.scaling != RopeScaling::kNone) spec.factor = fields.Number("factor", std::nullopt, 0, kHuge);
  if (spec.scaling == RopeScaling::kLlama3) {
    spec.low_freq_factor = fields.Number("low_freq_factor", std::nullopt, 0, kHuge);
    spec.high_freq_factor = fields.Number("high_freq_factor", std::nullopt, 0, kHuge);
    spec.original_max_positions = ReadOriginalPositions(fields, flat ? outer.original_positions : std::nullopt, outer);
    if (fields.ok() && spec.high_freq_factor <= spec.low_freq_factor) {
      fields.Fail("high_freq_factor", fmt::format("is {}, expected more than low_freq_factor {}", spec.high_freq_factor,
                                                  spec.low_freq_factor));
    }
  }
  if (spec.scaling == RopeScaling::kYarn) ReadYarn(fields, flat, outer, &spec);
  if (fields.Find("partial_rotary_factor") != nullptr && fields.Number("partial_rotary_factor", 1.0, 0, 1) != 1.0) {
    fields.Fail("partial_rotary_factor", "is not 1: rotating a part of the head is not supported");
  }
  // Another scaling's settings do nothing in transformers either.
  for (const char* field : {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings",
                            "attention_factor", "beta_fast", "beta_slow", "truncate", "mscale", "mscale_all_dim"}) {
    fields.Ignore(field);
  }
  for (const std::string& field : fields.Unknown()) warnings->push_back(UnknownFieldWarning(fields.path(), field));
  if (!fields.ok()) return fields.status();
  return spec;
}

absl::StatusOr<RopePair> ParseNewForm(const json& parameters, const Outer& outer, double local_theta, bool gemma,
                                      std::vector<std::string>* warnings) {
  const std::string path = "config.json: rope_parameters";
  RopePair pair;
  const bool by_type =
      parameters.is_object() && (parameters.contains("full_attention") || parameters.contains("sliding_attention"));
  if (!by_type) {
    if (gemma) return InvalidArgument("{} has no full_attention and sliding_attention, which this family needs", path);
    IHA_ASSIGN_OR_RETURN(pair.full, ParseSpec(parameters, path, true, outer, warnings));
    pair.sliding = pair.full;
    return pair;
  }
  Outer sliding = outer;
  sliding.theta = local_theta;
  for (const auto& [type, object] : parameters.items()) {
    if (type == "full_attention") {
      IHA_ASSIGN_OR_RETURN(pair.full, ParseSpec(object, path + "." + type, false, outer, warnings));
    } else if (type == "sliding_attention") {
      IHA_ASSIGN_OR_RETURN(pair.sliding, ParseSpec(object, path + "." + type, false, sliding, warnings));
    } else {
      return InvalidArgument("{}.{} is no layer type, expected full_attention and sliding_attention", path,
                             Shown(type));
    }
  }
  return pair;
}

}  // namespace

absl::StatusOr<RopePair> ParseRopes(FieldReader& fields, const FamilyRow& family, int64_t max_positions,
                                    std::vector<std::string>* warnings) {
  const bool has_theta = fields.Find("rope_theta") != nullptr;
  const double theta = has_theta ? fields.Number("rope_theta", std::nullopt, 1, kHuge) : family.rope_theta;
  double local_theta = theta;
  bool has_local_theta = false;
  if (family.rope_local_theta != 0) {
    has_local_theta = fields.Find("rope_local_base_freq") != nullptr;
    local_theta =
        has_local_theta ? fields.Number("rope_local_base_freq", std::nullopt, 1, kHuge) : family.rope_local_theta;
  }
  Outer outer{theta, max_positions, std::nullopt};
  if (fields.Find("original_max_position_embeddings") != nullptr) {
    outer.original_positions = fields.Int("original_max_position_embeddings", std::nullopt, 1, kMaxPositions);
  }
  const json *scaling = fields.Find("rope_scaling"), *parameters = fields.Find("rope_parameters");
  IHA_RETURN_IF_ERROR(fields.status());

  RopePair old_form{RopeSpec{.theta = theta}, std::nullopt};
  if (scaling != nullptr) {
    IHA_ASSIGN_OR_RETURN(old_form.full,
                         ParseSpec(*scaling, "config.json: rope_scaling", !family.gemma, outer, warnings));
  }
  old_form.sliding = family.rope_local_theta != 0 ? RopeSpec{.theta = local_theta} : old_form.full;
  if (parameters == nullptr) return old_form;

  IHA_ASSIGN_OR_RETURN(RopePair new_form, ParseNewForm(*parameters, outer, local_theta, family.gemma, warnings));
  const auto differ = [](const std::optional<RopeSpec>& a, const std::optional<RopeSpec>& b) {
    return a.has_value() && b.has_value() && *a != *b;
  };
  if (has_theta && new_form.full.has_value() && new_form.full->theta != theta) {
    return InvalidArgument("config.json: rope_theta is {}, but rope_parameters says {}: remove one", theta,
                           new_form.full->theta);
  }
  if (has_local_theta && new_form.sliding.has_value() && new_form.sliding->theta != local_theta) {
    return InvalidArgument("config.json: rope_local_base_freq is {}, but rope_parameters says {}: remove one",
                           local_theta, new_form.sliding->theta);
  }
  if (scaling != nullptr && differ(old_form.full, new_form.full)) {
    return InvalidArgument("config.json: rope_scaling and rope_parameters are both present and differ: remove one");
  }
  return new_form;
}

absl::Status CheckPositions(const ModelConfig& config) {
  for (size_t l = 0; l < config.layers.size(); ++l) {
    const LayerSpec& layer = config.layers[l];
    const int64_t step = layer.rope_positions == IhaPositions::kVirtual ? layer.pseudo_heads : 1;
    const std::vector<double> frequencies =
        InverseFrequencies(config.ropes[static_cast<size_t>(layer.rope)], config.head_dim);
    const double fastest = *std::max_element(frequencies.begin(), frequencies.end());
    const double limit = std::min(kMaxAngle / (fastest * static_cast<double>(step)),
                                  kMaxVirtualTokens / static_cast<double>(layer.pseudo_heads));
    if (static_cast<double>(config.context_tokens) <= limit) continue;
    return InvalidArgument(
        "config.json: max_position_embeddings is {}, expected at most {:.0f} (layer {}: {} positions a token of up to "
        "{:.6g} radians, exact up to 2^21): lower it",
        config.context_tokens, std::floor(limit), l, step, fastest);
  }
  return absl::OkStatus();
}

}  // namespace iha::checkpoint
