// import_parts.h: the steps of ImportGguf that have files of their own. Private to this folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/checkpoint/gguf/gguf_file.h"
#include "model/checkpoint/tensor.h"

namespace iha::checkpoint {

// What config.json needs, checked.
struct GgufModel {
  int64_t vocab_size = 0, hidden_size = 0, intermediate_size = 0, num_layers = 0;
  int64_t num_heads = 0, num_kv_heads = 0, head_dim = 0, context_tokens = 0;
  float rms_norm_eps = 0, rope_theta = 0;
  float rope_linear_factor = 0;  // 0: no scaling
  bool tied = false, attention_bias = false;
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

}  // namespace iha::checkpoint
