#include "model/checkpoint/gguf/architectures.h"

#include <fmt/format.h>

namespace iha::checkpoint {
namespace {

constexpr GgufName kCommonNames[] = {{"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
                                     {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
                                     {"attn_output", "self_attn.o_proj"}, {"ffn_gate", "mlp.gate_proj"},
                                     {"ffn_up", "mlp.up_proj"},           {"ffn_down", "mlp.down_proj"}};

constexpr GgufName kPlainNames[] = {{"ffn_norm", "post_attention_layernorm"}};
constexpr GgufName kQwen3Names[] = {
    {"ffn_norm", "post_attention_layernorm"}, {"attn_q_norm", "self_attn.q_norm"}, {"attn_k_norm", "self_attn.k_norm"}};
constexpr GgufName kGemma3Names[] = {{"post_attention_norm", "post_attention_layernorm"},
                                     {"ffn_norm", "pre_feedforward_layernorm"},
                                     {"post_ffw_norm", "post_feedforward_layernorm"},
                                     {"attn_q_norm", "self_attn.q_norm"},
                                     {"attn_k_norm", "self_attn.k_norm"}};

// Mistral models are "llama" files: llama.cpp's converter makes no difference.
constexpr GgufArchitecture kArchitectures[] = {
    {"llama", "llama", "LlamaForCausalLM", 10000.0F, true, false, kPlainNames},
    {"qwen2", "qwen2", "Qwen2ForCausalLM", 10000.0F, false, false, kPlainNames},
    {"qwen3", "qwen3", "Qwen3ForCausalLM", 10000.0F, false, false, kQwen3Names},
    {"gemma3", "gemma3_text", "Gemma3ForCausalLM", 1000000.0F, false, true, kGemma3Names}};

const char* FindName(std::span<const GgufName> names, std::string_view part) {
  for (const GgufName& row : names) {
    if (part == row.gguf) return row.hugging_face;
  }
  return nullptr;
}

}  // namespace

const GgufArchitecture* FindGgufArchitecture(std::string_view name) {
  for (const GgufArchitecture& row : kArchitectures) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

std::string KnownGgufArchitectures() {
  std::string names;
  for (const GgufArchitecture& row : kArchitectures) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

std::string HuggingFaceName(const GgufArchitecture& architecture, std::string_view name) {
  if (name == "token_embd.weight") return "model.embed_tokens.weight";
  if (name == "output_norm.weight") return "model.norm.weight";
  if (name == "output.weight") return "lm_head.weight";
  if (!name.starts_with("blk.")) return "";
  name.remove_prefix(4);
  const size_t dot = name.find('.'), last = name.rfind('.');
  if (dot == std::string_view::npos || last == dot) return "";
  const std::string_view layer = name.substr(0, dot), part = name.substr(dot + 1, last - dot - 1);
  const char* found = FindName(kCommonNames, part);
  if (found == nullptr) found = FindName(architecture.more_names, part);
  return found == nullptr ? "" : fmt::format("model.layers.{}.{}{}", layer, found, name.substr(last));
}

}  // namespace iha::checkpoint
