#include "model/transformer/kv_append.h"

namespace iha::model {

void AppendKeysAndValues(const kernels::KvLayout& layout, const StepTokens& tokens, size_t cache_offset,
                         AttentionInputs& inputs, kernels::ParallelFor& parallel) {
  const size_t parts = inputs.kv_heads() / layout.keys;
  parallel.Run(tokens.count(), [&](size_t token, int) {
    const size_t slot = tokens.positions[token] % kKvBlockTokens;
    uint8_t* slice = tokens.block_of_token[token] + cache_offset;
    for (size_t part = 0; part < parts; part++) {
      kernels::AppendKv(layout, slice + part * layout.bytes(), slot, inputs.keys(token) + part * layout.keys * layout.d,
                        inputs.values(token) + part * layout.d_v);
    }
  });
}

}  // namespace iha::model
