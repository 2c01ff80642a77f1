// cost.h: what one token of a model costs: FLOP by part, cache, parameters by part. Pure; thread: any.
//
// A multiply and an add count 2. Counted: matrix products, scores and weighted sums (attention), head mixes, collapse.
// Not counted: norms, RoPE, softmax, activations, biases (under 1 % at any size in use). Values are means over the
// positions of one prompt of `length` tokens, so causal masks and windows count as they are, edges included.
#pragma once

#include <cstdint>

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

// Numbers that the cache keeps for each token, over all layers; times the cache's bytes a number. `mixed`: iha layers
// cache pseudo keys and values (P times as many) in place of base ones.
int64_t KvNumbersPerToken(const ModelConfig& config, bool mixed);

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
