#include "model/transformer/kv_append.h"

#include "kernels/support/row_chunks.h"

namespace iha::model {

void AppendKeysAndValues(const kernels::KvLayout& layout, const StepTokens& tokens, size_t cache_offset,
                         AttentionInputs& inputs, kernels::ParallelFor& parallel) {
  const size_t parts = inputs.kv_heads() / layout.keys;
  // Sixteen tokens that follow each other share the cache lines of their keys: a thread takes them one after another.
  kernels::ForRowChunks(tokens.count(), parts * layout.bytes() / kKvBlockTokens, parallel, [&](size_t t0, size_t t1) {
    for (size_t token = t0; token < t1; ++token) {
      const size_t slot = tokens.positions[token] % kKvBlockTokens;
      uint8_t* slice = tokens.block_of_token[token] + cache_offset;
      for (size_t part = 0; part < parts; part++) {
        kernels::AppendKv(layout, slice + part * layout.bytes(), slot,
                          inputs.keys(token) + part * layout.keys * layout.d, inputs.values(token) + part * layout.d_v);
      }
    }
  });
}

}  // namespace iha::model
