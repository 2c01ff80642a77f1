// talking_heads.h: attention whose heads mix their scores before the softmax and their weights after it.
//
// For query heads a, b, c of one token: L[a] = q_a k_a^T scale; J[b] = sum_a L[a] pre[a,b]; W[b] = softmax over the
// visible keys of J[b]; U[c] = sum_b W[b] post[b,c]; O[c] = U[c] v_c. Heads share keys and values in groups of
// heads / kv_heads. Fixed order (numerics.md, NUM-15): scores, blocks, maximum and sum as in NUM-3; J_j = fma chain in
// increasing a from +0; once maximum m and sum L of a row are known over all its blocks, W_j = ExpNeg(J_j - m) / L,
// U_j = fma chain in increasing b, O_i = fma(U_j, V[j][i], O_i) from +0 in increasing visible j. So batch, chunks,
// threads, tiles and vector width change no bit.
// The mask comes after the pre-mix: keys that a token does not see take no part and may hold anything. A NaN in a
// visible score of one head reaches all heads, as the mixes say (0 NaN = NaN).
//
// Blocks are walked twice, once for m and L, once for the output; scores are computed both times, so scratch is
// O(heads (128 + d + d_v)) floats a token of a tile and thread, whatever the length. Threads: tiles of tokens of one
// sequence. Arguments are trusted: a wrong shape is a bug of the caller. Source: checkpoints.md, kind talking_heads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/attention/attention.h"
#include "kernels/support/parallel_for.h"

namespace iha::kernels {

struct TalkingHeadsShape {
  KvLayout layout;  // of one KV head, keys = 1; the next one's part of a block follows it
  size_t heads = 0;
  size_t kv_heads = 0;
  float scale = 1;
  uint32_t window = 0;  // tokens; 0 = none
  // [heads][heads], row-major, from head (a, b), to head (b, c).
  const float* pre = nullptr;
  const float* post = nullptr;
};

// Tokens of one sequence; neighbours should be neighbours in position (they share passes over the cache).
struct TalkingHeadsTokens {
  const void* const* blocks = nullptr;  // blocks[b]: positions 64 b ..; entries that no token sees are never read
  size_t offset = 0;                    // bytes from a block's start to its KV head 0
  std::span<const uint32_t> positions;  // of each token; it sees FirstVisible(position, window) .. position
  const float* q = nullptr;             // token t at q + t q_stride: [heads][d]
  size_t q_stride = 0;
  float* out = nullptr;  // [tokens][heads][d_v], written
};

// All sequences of one step in one call. Blocks until every out is written.
void TalkingHeads(const TalkingHeadsShape& shape, std::span<const TalkingHeadsTokens> sequences, ParallelFor& parallel);
// In double, straight from the equations; out [tokens][heads][d_v].
void TalkingHeadsRef(const TalkingHeadsShape& shape, const TalkingHeadsTokens& tokens, double* out);

}  // namespace iha::kernels
