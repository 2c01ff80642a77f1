// softmax_core.h: causal softmax attention of a step over the paged cache, between inputs and output: used by the kinds
// global, local, diff and diff_v2.
//
// Each query head attends to the key head of its group; `keys_per_value` neighbouring key heads share one value head
// (diff: pairs; else 1). Thread: the backend's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/support/parallel_for.h"
#include "model/transformer/attention_inputs.h"
#include "model/transformer/step_tokens.h"

namespace iha::model {

struct SoftmaxCoreShape {
  size_t heads = 0;  // of queries
  size_t key_heads = 0;
  size_t keys_per_value = 1;
  size_t d = 0;         // head_dim
  uint32_t window = 0;  // tokens; 0 = none
  float scale = 1;
  kernels::StorageType kv_type = kernels::StorageType::kF32;
};

class SoftmaxCore {
 public:
  explicit SoftmaxCore(const SoftmaxCoreShape& shape);

  size_t cache_bytes() const { return shape_.key_heads / shape_.keys_per_value * layout_.bytes(); }
  size_t d_v() const { return layout_.d_v; }  // keys_per_value * d
  // Appends the step's keys and values to the cache, then writes y [tokens][heads][d_v].
  void Forward(const StepTokens& tokens, size_t cache_offset, AttentionInputs& inputs, float* y,
               kernels::ParallelFor& parallel);

 private:
  const SoftmaxCoreShape shape_;
  const kernels::KvLayout layout_;  // of the keys that share a value head, with it
  std::vector<kernels::AttentionRow> rows_;
};

}  // namespace iha::model
