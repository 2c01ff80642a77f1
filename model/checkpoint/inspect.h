// inspect.h: what `iha-eval inspect` says about a checkpoint: a value, and its two printed forms.
//
// Inspect reads every weight once, for the digest (seconds for large models). Output is deterministic; text from the
// checkpoint is made safe for terminals. Thread: any.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/digest.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/cost.h"

namespace iha::checkpoint {

struct LengthCost {
  int64_t length = 0;
  FlopsPerToken flops;
  int64_t kv_numbers = 0;  // of a sequence that long: windows keep their last tokens
};

struct Inspection {
  std::string directory;
  std::string family;               // "llama", or "llama + iha_eval"
  std::vector<std::string> layers;  // one for each: "iha P=2 per_head flat_causal window 8 tokens, xsa output"
  int64_t vocab_size = 0, hidden_size = 0, num_heads = 0, num_kv_heads = 0, head_dim = 0, context_tokens = 0;
  ParameterCount parameters;
  std::map<std::string, int64_t> dtypes;  // stored dtype -> weights
  Digest digest;
  std::vector<LengthCost> costs;                 // in the order asked for
  int64_t kv_numbers = 0;                        // for each token; times 4 bytes (f32) or 2 (bf16)
  int64_t kv_numbers_base = 0;                   // the same if iha layers held base keys and values,
  int64_t kv_numbers_mixed = 0;                  // and if they held pseudo ones
  std::vector<std::string> generation_settings;  // of generation_config.json, not applied: "temperature=0.2"
  std::vector<std::string> warnings;
};

// lengths: each >= 1.
Inspection Inspect(const Checkpoint& checkpoint, std::span<const int64_t> lengths);

// One layer in words.
std::string DescribeLayer(const ModelConfig& config, const LayerSpec& layer);

// Lines for people, and one JSON object.
std::string InspectionText(const Inspection& inspection);
std::string InspectionJson(const Inspection& inspection);

}  // namespace iha::checkpoint
