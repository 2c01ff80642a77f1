// config_parts.h: the steps of ParseModelConfig that have files of their own. Private to this folder.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/checkpoint/config.h"
#include "model/checkpoint/families.h"
#include "model/checkpoint/json_fields.h"

namespace iha::checkpoint {

// RoPE of layers that see everything and of sliding layers; equal but for Gemma 3 and rope_parameters by layer type.
struct RopePair {
  std::optional<RopeSpec> full;
  std::optional<RopeSpec> sliding;
};
// Reads rope_theta + rope_scaling, or rope_parameters; both present and different = error.
absl::StatusOr<RopePair> ParseRopes(FieldReader& fields, const FamilyRow& family, int64_t max_positions,
                                    std::vector<std::string>* warnings);

// InvalidArgument unless every layer's tables and virtual indices reach all of the context.
absl::Status CheckPositions(const ModelConfig& config);

// Replaces layers and mlp by what the block says. `config` holds the Llama fields already.
absl::Status ParseIhaEval(const nlohmann::json& block, ModelConfig* config);

// "unknown field ..." with one wording for config.json and its parts.
std::string UnknownFieldWarning(std::string_view path, std::string_view field);

// Token ids: null, a number or a list of numbers.
std::vector<int32_t> ReadTokenIds(FieldReader& fields, const char* field, const std::optional<int32_t>& fallback);

}  // namespace iha::checkpoint
