// cost.h: what one token of a model costs: FLOP by part, cache, parameters by part. Pure; thread: any.
//
// A multiply and an add count 2. Counted: matrix products, scores and weighted sums (attention), head mixes, collapse.
// Not counted: norms, RoPE, softmax, activations, biases (under 1 % at any size in use). Values are means over the
// positions of one prompt of `length` tokens, so causal masks and windows count as they are, edges included.
#pragma once

#include <cstdint>

#include "kernels/attention/attention.h"
#include "model/checkpoint/config.h"

namespace iha::checkpoint {

struct FlopsPerToken {
  double linear = 0;  // q, k, v, o and the small projections (gate, lambda)
  double mlp = 0;
  double mix = 0;       // iha alpha, talking heads pre and post, knocking
  double scores = 0;    // q.k and the weighted sum of v
  double collapse = 0;  // iha
  double head = 0;      // logits
  double total() const { return linear + mlp + mix + scores + collapse + head; }
  FlopsPerToken& operator+=(const FlopsPerToken& other);
};
// One layer (its `head` is 0), and the whole model. length >= 1.
FlopsPerToken LayerFlops(const ModelConfig& config, const LayerSpec& layer, int64_t length);
FlopsPerToken ModelFlops(const ModelConfig& config, int64_t length);

// Mean number of (query, key) pairs of one head that a token of a prompt of `length` tokens adds; iha: virtual tokens.
double VisiblePairs(const LayerSpec& layer, int64_t length);

// What an iha layer caches: base keys and values, or pseudo ones (P times as many). The bits of a model do not depend
// on it. kByRule is the product; the others are for tests and comparisons (post_mix layers are mixed even under kBase).
enum class IhaCacheForm { kByRule, kBase, kMixed };
// The rule (docs/contracts/numerics.md, NUM-9a): mixed if P <= 1 + H / P or qk_norm is post_mix.
bool IhaCachesMixed(const ModelConfig& config, const LayerSpec& layer, IhaCacheForm form = IhaCacheForm::kByRule);

// How the cache keeps one value head of a layer with the key heads that share it (diff: a pair; else one); mixed iha
// caches keep `pseudo_heads` of them a head.
kernels::KvLayout KvLayoutOf(const ModelConfig& config, const LayerSpec& layer, kernels::StorageType type);
// Numbers that the exact engine's cache reserves for each token, over all layers, padding of values to 16 lanes
// included; times the cache's bytes a number.
int64_t KvNumbersPerToken(const ModelConfig& config, IhaCacheForm form = IhaCacheForm::kByRule);

// Tokens whose keys a token's queries see at most, its own included; 0 = no bound. A window in virtual units counts as
// the tokens that it reaches into.
int64_t WindowTokens(const LayerSpec& layer);

// The same for one sequence of `length` tokens, of which layers with windows keep the last (the engine: and those of
// its step, in whole blocks of 64).
int64_t KvNumbersOfSequence(const ModelConfig& config, int64_t length);

struct ParameterCount {
  int64_t embedding = 0;
  int64_t attention = 0;  // projections, biases, everything of the variants
  int64_t mlp = 0;
  int64_t norms = 0;
  int64_t head = 0;  // 0 if tied
  int64_t total() const { return embedding + attention + mlp + norms + head; }
};
ParameterCount CountParameters(const ModelConfig& config);

}  // namespace iha::checkpoint
