// kv_append.h: a step's keys and values into the paged cache, for the kinds that cache them as they are.
//
// A layer's slice of a block holds one part of layout.bytes() for each value head, in increasing order; layout.keys
// neighbouring key heads share it (diff: pairs; else 1). Thread: the backend's.
#pragma once

#include <cstddef>

#include "kernels/attention/attention.h"
#include "kernels/support/parallel_for.h"
#include "model/transformer/attention_inputs.h"
#include "model/transformer/step_tokens.h"

namespace iha::model {

void AppendKeysAndValues(const kernels::KvLayout& layout, const StepTokens& tokens, size_t cache_offset,
                         AttentionInputs& inputs, kernels::ParallelFor& parallel);

}  // namespace iha::model
