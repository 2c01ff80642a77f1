// attention.h: softmax(q K^T) V over a paged KV cache, exact in every batch and chunking (numerics.md, NUM-3).
//
// Per row: qs = q * scale, rounded once; s_j = fma chain over d. Keys in blocks of 64 aligned to absolute position, in
// increasing order; per block m' = max(m, s_j of visible keys), then a = exp(m - m'), L[0..15] *= a, acc *= a; p_j =
// exp(s_j - m'); L[j mod 16] += p_j and acc = fma(p_j, V_j, acc) in increasing j. L folds 16 -> 1; out = acc / L. Keys
// that a row does not see take no part, so unwritten slots may hold anything, NaN included. A row that sees a NaN score
// is NaN throughout.
//
// A cache block holds 64 tokens of one KV head: K as [4][d][16] (keys of a sub-block of 16 are adjacent), then V as
// [64][RoundUp16(d_v)]; with layout.keys > 1 (differential attention) that many K parts, one after another, share V.
// Block b of a sequence holds positions 64 b .. 64 b + 63. For IHA the position is the virtual index. Groups whose
// tables begin with the same blocks (a prompt prefix in common) take these blocks together, then each its own
// (attention_jobs.h). Threads: work is cut into jobs of whole rows; keys are never split. Blocks are only read.
// Arguments are trusted: a wrong shape is a bug of the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/support/lanes.h"
#include "kernels/support/parallel_for.h"
#include "kernels/support/small_float.h"

namespace iha::kernels {

inline constexpr size_t kKeyBlock = 64;
inline constexpr size_t kMaxHeadDim = 512;  // of d and of d_v

// Shape of one KV head's part of a cache block; bytes() is a multiple of 64. type: kF32 or kBF16 (rounded to nearest
// even when stored).
struct KvLayout {
  StorageType type = StorageType::kF32;
  size_t d = 0;
  size_t d_v = 0;
  size_t keys = 1;

  [[nodiscard]] constexpr size_t v_stride() const { return RoundUp16(d_v); }
  [[nodiscard]] constexpr size_t k_elements() const { return kKeyBlock * d; }
  [[nodiscard]] constexpr size_t v_begin() const { return keys * k_elements(); }
  [[nodiscard]] constexpr size_t bytes() const { return (v_begin() + kKeyBlock * v_stride()) * StorageBytes(type); }
};

// Writes the keys [layout.keys][d] and the value [d_v] of one token to slot 0 .. 63 of a block. `block` is 64-byte
// aligned, layout.bytes() long.
void AppendKv(const KvLayout& layout, void* block, size_t slot, const float* k, const float* v);
// One half of it; key: which of layout.keys.
void StoreKey(const KvLayout& layout, void* block, size_t slot, const float* k, size_t key = 0);
void StoreValue(const KvLayout& layout, void* block, size_t slot, const float* v);
// The stored (rounded) values, for oracles and tests.
float KeyAt(const KvLayout& layout, const void* block, size_t slot, size_t i, size_t key = 0);
float ValueAt(const KvLayout& layout, const void* block, size_t slot, size_t i);

// One query: sees keys first .. last (inclusive). With the causal mask last = pos; see FirstVisible.
struct AttentionRow {
  const float* q = nullptr;  // [d]
  float* out = nullptr;      // [d_v], written; may be q itself, but no other row's
  uint32_t first = 0;
  uint32_t last = 0;
};
// window keys up to and including pos; 0 = no window.
constexpr uint32_t FirstVisible(uint32_t pos, uint32_t window) {
  return window == 0 || pos < window ? 0 : pos - window + 1;
}

// Key blocks that are computed when they are needed, for caches that hold something else. Called from several threads.
class KeyBlockMaker {
 public:
  virtual ~KeyBlockMaker() = default;
  // Slots 0 .. slots - 1 of block b into `block` (layout.bytes() long, 64-byte aligned, contents unspecified).
  virtual void Make(size_t b, size_t slots, void* block) const = 0;
  // What block b is made of: makers of groups with the same head_offset and key whose sources of b are equal make the
  // same block, which one of them then makes for all their rows.
  [[nodiscard]] virtual const void* Source(size_t /*b*/) const { return this; }
};

// Queries that share the keys and values of one KV head of one sequence: rows of several heads and several positions,
// in any mix. Rows next to each other should see similar keys (they share passes over the cache); order changes no bit.
struct AttentionGroup {
  // blocks[b]: positions 64 b ..; entries before the first and after the last block that a row sees are never read, nor
  // is a block that no row sees. Tables with the same block at b hold the same ones before it (else only time is lost).
  const void* const* blocks = nullptr;
  size_t head_offset = 0;  // bytes from a block's start to this head's part
  std::span<const AttentionRow> rows;
  // If set, blocks come from here and `blocks` is not read: each is made once for the rows of a job (as many as a group
  // has, up to kMadeBlockTiles tiles, and those of groups that share it) and never outlives it, so scratch does not
  // grow with the sequence.
  const KeyBlockMaker* maker = nullptr;
  size_t key = 0;  // which of layout.keys the rows see
};
inline constexpr size_t kMadeBlockTiles = 64;
inline constexpr size_t kMaxJobTiles = 16;   // of a job without makers
inline constexpr size_t kJobsPerThread = 6;  // that a call aims at

// All groups of one step in one call, so that the threads see all the work. Blocks until every out is written.
void Attention(const KvLayout& layout, float scale, std::span<const AttentionGroup> groups, ParallelFor& parallel);

// The same in double (softmax without blocks), out as double [row][d_v]: for error bounds.
void AttentionRef(const KvLayout& layout, float scale, const AttentionGroup& group, double* out);

}  // namespace iha::kernels
