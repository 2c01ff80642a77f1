// import_parts.h: the steps of ImportGguf that have files of their own. Private to this folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/checkpoint/gguf/architectures.h"
#include "model/checkpoint/gguf/gguf_file.h"
#include "model/checkpoint/tensor.h"

namespace iha::checkpoint {

// Llama 3.x files carry the divisors of their RoPE frequencies as a tensor instead of the scaling's parameters.
inline constexpr const char* kRopeFactors = "rope_freqs.weight";

enum class GgufRopeScaling { kNone, kLinear, kYarn, kLlama3 };

// What config.json needs, checked.
struct GgufModel {
  const GgufArchitecture* architecture = nullptr;
  int64_t vocab_size = 0, hidden_size = 0, intermediate_size = 0, num_layers = 0;
  int64_t num_heads = 0, num_kv_heads = 0, head_dim = 0, context_tokens = 0;
  float rms_norm_eps = 0, rope_theta = 0;
  GgufRopeScaling rope_scaling = GgufRopeScaling::kNone;
  float rope_factor = 0;
  int64_t rope_original_tokens = 0;  // yarn, llama3
  std::optional<float> yarn_beta_fast, yarn_beta_slow;
  bool tied = false, attention_bias = false, mlp_bias = false;
  // Gemma.
  int64_t sliding_window = 0;
  float rope_local_theta = 0;
  std::vector<bool> sliding_layers;
  double query_pre_attn_scalar = 0;
};
absl::StatusOr<GgufModel> ReadGgufModel(const GgufFile& file);

struct TextFile {
  std::string name;
  std::string contents;
};
// config.json and generation_config.json.
absl::StatusOr<std::vector<TextFile>> ConfigFiles(const GgufFile& file, const GgufModel& model, DType dtype);
// tokenizer.json and tokenizer_config.json.
absl::StatusOr<std::vector<TextFile>> TokenizerFiles(const GgufFile& file, const GgufModel& model);

// bos / eos / padding / unknown: absent, or a token id below `vocab_size`.
absl::StatusOr<std::optional<int64_t>> SpecialTokenId(const GgufFile& file, const char* role, int64_t vocab_size);

// RoPE of the file into `model`, whose architecture and head_dim are set.
absl::Status ReadGgufRope(const GgufFile& file, GgufModel* model);

}  // namespace iha::checkpoint
