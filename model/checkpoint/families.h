// families.h: what each model family's transformers class assumes where config.json is silent (docs/checkpoints.md
// holds the same table). Private to this folder. Source: the *Config classes of transformers 5 and 4.57.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "model/checkpoint/config.h"

namespace iha::checkpoint {

enum class WindowRule { kNever, kAllLayers, kFromLayer, kPattern };

struct FamilyRow {
  Family family;
  const char* model_type;
  const char* architecture;  // the class whose forward pass this is
  int64_t vocab_size, hidden_size, intermediate_size, num_layers, num_heads;
  int64_t num_kv_heads;  // 0: as num_attention_heads
  int64_t head_dim;      // 0: hidden_size / num_attention_heads
  const char* activation_field;
  Activation activation;
  int64_t max_positions;
  double rms_norm_eps;
  double rope_theta;
  double rope_local_theta;  // sliding layers; 0: as rope_theta
  bool tied_embeddings;
  WindowRule window_rule;
  int64_t sliding_window;  // where the field is absent; -1: none
  std::optional<int32_t> bos, eos;
  bool always_qkv_bias;  // q, k, v have biases and no field says so
  bool reads_attention_bias, reads_mlp_bias;
  bool qk_norm;
  bool gemma;  // 1 + w norms, embedding scale, sandwich norms, query_pre_attn_scalar
};

std::span<const FamilyRow> Families();
const FamilyRow* FindFamily(std::string_view model_type);  // null if unknown
std::string KnownFamilies();                               // "llama, mistral, ..."

// Fields that no forward pass of these families depends on.
bool IsHarmlessField(std::string_view field);

}  // namespace iha::checkpoint
