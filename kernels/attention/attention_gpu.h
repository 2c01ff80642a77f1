// attention_gpu.h: softmax(q K^T) V over a paged cache on the device, bf16 in and out, fp32 softmax (flash attention).
//
// One kernel for prefill, chunks and decode (numerics `cuda-exact`): a warp owns 16 query rows of one head and sequence
// and goes over the keys in blocks of 64 aligned to absolute position, in increasing order, never split. Per block: s =
// q k by mma in increasing d; m' = max(m, visible s); with c = scale log2(e): a = 2^((m - m') c), p = 2^(s c - m' c), 0
// where not visible; a lane's part of the sum l = l a + its p in increasing key; acc = acc a + bf16(p) V by mma in
// increasing key. At the end the four lanes of a row add their parts (distance 1, then 2), out = bf16(acc / l), lse = m
// scale + ln l. A block that a row does not see changes none of its bits, so a row's bits depend on its own q, its
// visible keys and their absolute positions only: not on the batch, the chunk, or the tile of rows.
//
// Cache: pages of 64 keys; page p of KV head g begins at element (p kv_heads + g) 64 d of k_pages, and of V at the same
// one of v_pages; a key's row is dense. Where d_v = 2 d, key heads 2 i and 2 i + 1 share a value (differential
// attention), whose page begins at element (p kv_heads / 2 + i) 64 d_v: keys and values of a page are as many bytes in
// every form. Slots past kv_length are not read. NaN and infinities of a key or value reach the rows that see it and no
// others (blocks where it matters are looked through).
//
// Split (numerics `cuda-fast`, calls of at most kGpuSplitRows rows a sequence: decode, P rows a token for IHA): with
// split_keys, blocks of threads take pieces of so many keys, aligned to absolute position, and a second kernel merges
// them in increasing order: M = max m, weights 2^((m - M) c) of acc and l. The pieces of a row are fixed by split_keys,
// so its bits still do not depend on the batch. Calls with more rows are not split.
//
// Rows of sequence b: q_begin[b] .. q_begin[b + 1] - 1; the last sits at position kv_length[b] - 1 (bottom-right). All
// lengths are read on the device. d = d_v = 64, 128 or 256, or d_v = 2 d = 128 or 256 with kv_heads even; heads a
// multiple of kv_heads.
// Returns before it is done (target.h); status 1 for a shape outside of these.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/simt/target.h"

namespace iha::kernels {

inline constexpr uint32_t kGpuKeyBlock = 64;
inline constexpr uint32_t kGpuSplitRows = 64;

// Which keys a row at position p (of virtual tokens, P a token) sees.
struct AttentionGpuMask {
  uint32_t pseudo = 1;        // P
  bool token_causal = false;  // all pseudo tokens of its own token, else those up to itself
  bool token_window = false;  // window counts tokens, else virtual tokens
  uint32_t window = 0;        // keys (or tokens) up to and including its own; 0: all
};
struct VisibleKeys {
  uint32_t first = 0;
  uint32_t last = 0;  // inclusive
};
IHA_HOST_DEVICE constexpr VisibleKeys VisibleTo(const AttentionGpuMask& mask, uint32_t position) {
  const uint32_t token = position / mask.pseudo;
  VisibleKeys v{0, mask.token_causal ? token * mask.pseudo + mask.pseudo - 1 : position};
  if (mask.window == 0) return v;
  if (mask.token_window) {
    v.first = token < mask.window ? 0 : (token - mask.window + 1) * mask.pseudo;
  } else {
    v.first = position < mask.window ? 0 : position - mask.window + 1;
  }
  return v;
}

// Heads of values beside kv_heads of keys.
IHA_HOST_DEVICE constexpr uint32_t GpuValueHeads(uint32_t kv_heads, uint32_t d, uint32_t d_v) {
  return d_v == 2 * d ? kv_heads / 2 : kv_heads;
}

struct AttentionGpuArgs {
  const uint16_t* q = nullptr;  // row r, head h at (r heads + h) d
  const uint16_t* k_pages = nullptr;
  const uint16_t* v_pages = nullptr;
  const int32_t* page_table = nullptr;  // [sequence][pages_per_sequence]
  const uint32_t* q_begin = nullptr;    // [sequences + 1]
  const uint32_t* kv_length = nullptr;  // [sequences], the new keys included
  uint16_t* out = nullptr;              // row r, head h at (r heads + h) d_v
  float* lse = nullptr;                 // [row][heads], or null
  uint32_t sequences = 0;
  uint32_t max_rows = 0;  // of one sequence: sizes the grid
  uint32_t pages_per_sequence = 0;
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t d = 0;
  uint32_t d_v = 0;
  float scale = 1.0f;
  AttentionGpuMask mask = {};
  uint32_t split_keys = 0;      // 0: never split; else a multiple of 64
  uint32_t max_keys = 0;        // with split_keys: at least every kv_length
  float* split_out = nullptr;   // scratch, [piece][row][head][d_v], AttentionGpuPieces(args) pieces
  float* split_sums = nullptr;  // scratch, [piece][row][head][2]
  uint32_t rows = 0;            // with split_keys: of all sequences
};
constexpr uint32_t AttentionGpuPieces(const AttentionGpuArgs& a) {
  return a.split_keys == 0 || a.max_rows > kGpuSplitRows ? 1 : (a.max_keys + a.split_keys - 1) / a.split_keys;
}

// Keys of a piece so that `blocks` heads of sequences, each cut into pieces, give every one of `processors` two blocks
// of threads; 0 where they do so whole, where pieces would be shorter than 256 keys, and where rows are too many.
constexpr uint32_t AttentionGpuSplitFor(uint32_t blocks, uint32_t max_rows, uint32_t max_keys, uint32_t processors) {
  if (blocks == 0 || blocks >= 2 * processors || max_rows > kGpuSplitRows) return 0;
  const uint32_t pieces = (2 * processors + blocks - 1) / blocks;
  const uint32_t keys = ((max_keys + pieces - 1) / pieces + kGpuKeyBlock - 1) / kGpuKeyBlock * kGpuKeyBlock;
  const uint32_t split = keys < 256 ? 256 : keys;
  return split < max_keys ? split : 0;
}

// Rows are cut into tiles of 16 a warp: 1 warp a block where that is enough (decode), else 4.
constexpr uint32_t AttentionGpuWarps(uint32_t max_rows) { return max_rows <= 16 ? 1 : 4; }
constexpr size_t AttentionGpuSharedBytes(uint32_t warps, uint32_t d, uint32_t d_v) {
  const size_t rows = size_t{warps} * 16 * (d > d_v ? d : d_v);  // q, and the output on its way out
  return 2 * (rows + size_t{2} * kGpuKeyBlock * (d + d_v));
}

GpuStatus AttentionGpu(const AttentionGpuArgs& args, GpuStream stream);

// Its kernels: whole keys or a piece of them (kSplit), by 1 or 4 warps; then what pieces come to.
template <uint32_t kD, uint32_t kDv, uint32_t kWarps, bool kSplit>
GpuStatus LaunchFlash(const AttentionGpuArgs& args, GpuStream stream);
template <uint32_t kDv>
GpuStatus LaunchFlashMerge(const AttentionGpuArgs& args, GpuStream stream);

}  // namespace iha::kernels
