// softmax_core.h: causal softmax attention of a step over the paged cache, between inputs and output: used by the kinds
// global, local, diff and diff_v2.
//
// Each query head attends to the key head of its group; layout.keys neighbouring key heads share one value head (diff:
// pairs; else 1). Thread: the backend's.
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
  uint32_t window = 0;  // tokens; 0 = none
  float scale = 1;
  kernels::KvLayout layout;  // of the keys that share a value head, with it
};

class SoftmaxCore {
 public:
  explicit SoftmaxCore(const SoftmaxCoreShape& shape) : shape_(shape) {}

  size_t cache_bytes() const { return shape_.key_heads / shape_.layout.keys * shape_.layout.bytes(); }
  size_t d_v() const { return shape_.layout.d_v; }  // keys * d
  // Appends the step's keys and values to the cache, then writes y [tokens][heads][d_v].
  void Forward(const StepTokens& tokens, size_t cache_offset, AttentionInputs& inputs, float* y,
               kernels::ParallelFor& parallel);

 private:
  const SoftmaxCoreShape shape_;
  std::vector<kernels::AttentionRow> rows_;
};

}  // namespace iha::model
