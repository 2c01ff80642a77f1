#include "model/checkpoint/families.h"

#include <algorithm>
#include <string>

namespace iha::checkpoint {
namespace {

const std::array<FamilyRow, 5> kFamilies{{
    {.family = Family::kLlama,
     .model_type = "llama",
     .architecture = "LlamaForCausalLM",
     .vocab_size = 32000,
     .hidden_size = 4096,
     .intermediate_size = 11008,
     .num_layers = 32,
     .num_heads = 32,
     .num_kv_heads = 0,
     .head_dim = 0,
     .activation_field = "hidden_act",
     .activation = Activation::kSilu,
     .max_positions = 2048,
     .rms_norm_eps = 1e-6,
     .rope_theta = 10000,
     .rope_local_theta = 0,
     .tied_embeddings = false,
     .window_rule = WindowRule::kNever,
     .sliding_window = -1,
     .bos = 1,
     .eos = 2,
     .always_qkv_bias = false,
     .reads_attention_bias = true,
     .reads_mlp_bias = true,
     .qk_norm = false,
     .gemma = false},
    {.family = Family::kMistral,
     .model_type = "mistral",
     .architecture = "MistralForCausalLM",
     .vocab_size = 32000,
     .hidden_size = 4096,
     .intermediate_size = 14336,
     .num_layers = 32,
     .num_heads = 32,
     .num_kv_heads = 8,
     .head_dim = 0,
     .activation_field = "hidden_act",
     .activation = Activation::kSilu,
     .max_positions = 131072,
     .rms_norm_eps = 1e-6,
     .rope_theta = 10000,
     .rope_local_theta = 0,
     .tied_embeddings = false,
     .window_rule = WindowRule::kAllLayers,
     .sliding_window = 4096,
     .bos = 1,
     .eos = 2,
     .always_qkv_bias = false,
     .reads_attention_bias = false,
     .reads_mlp_bias = false,
     .qk_norm = false,
     .gemma = false},
    {.family = Family::kQwen2,
     .model_type = "qwen2",
     .architecture = "Qwen2ForCausalLM",
     .vocab_size = 151936,
     .hidden_size = 4096,
     .intermediate_size = 22016,
     .num_layers = 32,
     .num_heads = 32,
     .num_kv_heads = 32,
     .head_dim = 0,
     .activation_field = "hidden_act",
     .activation = Activation::kSilu,
     .max_positions = 32768,
     .rms_norm_eps = 1e-6,
     .rope_theta = 10000,
     .rope_local_theta = 0,
     .tied_embeddings = false,
     .window_rule = WindowRule::kFromLayer,
     .sliding_window = 4096,
     .bos = std::nullopt,
     .eos = std::nullopt,
     .always_qkv_bias = true,
     .reads_attention_bias = false,
     .reads_mlp_bias = false,
     .qk_norm = false,
     .gemma = false},
    {.family = Family::kQwen3,
     .model_type = "qwen3",
     .architecture = "Qwen3ForCausalLM",
     .vocab_size = 151936,
     .hidden_size = 4096,
     .intermediate_size = 22016,
     .num_layers = 32,
     .num_heads = 32,
     .num_kv_heads = 32,
     .head_dim = 128,
     .activation_field = "hidden_act",
     .activation = Activation::kSilu,
     .max_positions = 32768,
     .rms_norm_eps = 1e-6,
     .rope_theta = 10000,
     .rope_local_theta = 0,
     .tied_embeddings = false,
     .window_rule = WindowRule::kFromLayer,
     .sliding_window = 4096,
     .bos = std::nullopt,
     .eos = std::nullopt,
     .always_qkv_bias = false,
     .reads_attention_bias = true,
     .reads_mlp_bias = false,
     .qk_norm = true,
     .gemma = false},
    {.family = Family::kGemma3Text,
     .model_type = "gemma3_text",
     .architecture = "Gemma3ForCausalLM",
     .vocab_size = 262208,
     .hidden_size = 2304,
     .intermediate_size = 9216,
     .num_layers = 26,
     .num_heads = 8,
     .num_kv_heads = 4,
     .head_dim = 256,
     .activation_field = "hidden_activation",
     .activation = Activation::kGeluTanh,
     .max_positions = 131072,
     .rms_norm_eps = 1e-6,
     .rope_theta = 1000000,
     .rope_local_theta = 10000,
     .tied_embeddings = true,
     .window_rule = WindowRule::kPattern,
     .sliding_window = 4096,
     .bos = 2,
     .eos = 1,
     .always_qkv_bias = false,
     .reads_attention_bias = true,
     .reads_mlp_bias = false,
     .qk_norm = true,
     .gemma = true},
}};

// Bookkeeping of training and generation, not of the function.
constexpr std::string_view kHarmless[] = {
    "_name_or_path",
    "attention_dropout",
    "cache_implementation",
    "initializer_range",
    "is_llama_config",
    "output_attentions",
    "output_hidden_states",
    "pad_token_id",
    "pretraining_tp",  // how a matmul is cut into pieces; the same sum
    "return_dict",
    "rope_interleaved",  // SmolLM writes it; the Llama class does not read it
    "transformers.js_config",
    "transformers_version",
    "unsloth_fixed",
    "unsloth_version",
    "use_cache",
};

}  // namespace

std::span<const FamilyRow> Families() { return kFamilies; }

const FamilyRow* FindFamily(std::string_view model_type) {
  for (const FamilyRow& row : kFamilies) {
    if (model_type == row.model_type) return &row;
  }
  return nullptr;
}

std::string KnownFamilies() {
  std::string result;
  for (const FamilyRow& row : kFamilies) {
    if (!result.empty()) result += ", ";
    result += row.model_type;
  }
  return result;
}

bool IsHarmlessField(std::string_view field) {
  return std::find(std::begin(kHarmless), std::end(kHarmless), field) != std::end(kHarmless);
}

}  // namespace iha::checkpoint
