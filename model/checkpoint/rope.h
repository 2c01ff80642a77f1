// rope.h: one rotary embedding, resolved: what config.json says in any of its forms, as numbers.
//
// Computed in double, with the formulas of transformers' modeling_rope_utils (5.x). Pure; thread: any.
#pragma once

#include <cstdint>
#include <vector>

namespace iha::checkpoint {

enum class RopeScaling { kNone, kLinear, kLlama3, kYarn, kDynamic };
const char* NameOf(RopeScaling scaling);  // "default", "linear", "llama3", "yarn", "dynamic"

// Fields that a scaling does not use keep these values, so equal functions compare equal.
struct RopeSpec {
  double theta = 10000.0;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;                 // linear, llama3, yarn; dynamic: recorded, without effect up to the limit
  double attention_factor = 1.0;       // multiplies cos and sin; other than 1 only for yarn, resolved at load
  double low_freq_factor = 1.0;        // llama3
  double high_freq_factor = 1.0;       // llama3
  int64_t original_max_positions = 0;  // llama3, yarn
  double beta_fast = 32.0;             // yarn
  double beta_slow = 1.0;              // yarn
  bool truncate = true;                // yarn: the ramp's ends are floored and ceiled
  bool operator==(const RopeSpec&) const = default;
};

// Angle of pair i at position p is p * result[i]; i in [0, head_dim / 2). head_dim is even. `dynamic` gives the
// unscaled frequencies: ModelConfig::context_tokens keeps positions below the point where it would change them.
std::vector<double> InverseFrequencies(const RopeSpec& spec, int64_t head_dim);

// yarn's attention_factor where the config gives none; mscale / mscale_all_dim 0 = absent.
double YarnAttentionFactor(double factor, double mscale, double mscale_all_dim);

}  // namespace iha::checkpoint
