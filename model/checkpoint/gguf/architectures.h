// architectures.h: the architectures of GGUF that `import gguf` knows, and where their tensors belong.
//
// Names follow llama.cpp's converter (gguf-py/gguf/tensor_mapping.py), which renames, and changes values twice: Llama's
// q and k rows are permuted, Gemma's norm weights are stored plus 1. Pure; thread: any.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace iha::checkpoint {

struct GgufName {
  const char* gguf;          // "attn_q"
  const char* hugging_face;  // "self_attn.q_proj"
};

struct GgufArchitecture {
  const char* name;                      // general.architecture, and the prefix of its keys
  const char* model_type;                // of config.json
  const char* transformers;              // the class
  float rope_theta;                      // where rope.freq_base is absent
  bool permuted_qk;                      // rows of q and k are interleaved; mlp_bias is a field of the config
  bool gemma;                            // norm weights plus 1, sliding layers, GELU, merges from the order of tokens
  std::span<const GgufName> more_names;  // besides those that all have
};

const GgufArchitecture* FindGgufArchitecture(std::string_view name);  // null: unknown
std::string KnownGgufArchitectures();                                 // "llama, qwen2, ..."

// "blk.3.attn_q.weight" -> "model.layers.3.self_attn.q_proj.weight"; "" if the name has no place in the architecture.
std::string HuggingFaceName(const GgufArchitecture& architecture, std::string_view name);

}  // namespace iha::checkpoint
