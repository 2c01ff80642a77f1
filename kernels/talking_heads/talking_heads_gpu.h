// talking_heads_gpu.h: attention whose heads mix their scores before the softmax and their weights after it, on the
// device (talking_heads.h), over the paged cache of attention_gpu.h. At reference speed: scores are materialised.
//
// Three kernels for block_rows rows of every sequence at a time, over scratch in fp32:
//   scores:  L[a] = (q_a k_a^T) scale, by mma in increasing d, of every key block that the row sees
//   mixes:   J[b]_j = fma chain of pre[a,b] L[a]_j in increasing a; m = max and l = sum of 2^((J_j - m) log2 e) over
//   the
//            visible j, lane j mod 32 in increasing j, then pairs of lanes; W[b]_j = that / l; U[c]_j = fma chain of
//            post[b,c] W[b]_j in increasing b, in place of L
//   values:  O[c] = sum of bf16(U[c]_j) V_j by mma, blocks of 64 keys in increasing order; rounded to bf16
// Keys are never split and take their place by absolute position, so a row's bits depend on its own q, its visible keys
// and their positions only. Keys that a row does not see take no part; a NaN or infinity of a key reaches every head of
// the rows that see it, of a value the heads of its group, and no others.
//
// Scratch traffic a visible key and head: 4 bytes written by scores, read and written by the pre-mix, read twice for m
// and l, read and written by the post-mix, read by values. attention: lse null, split_keys 0, mask.window only,
// max_keys at least every kv_length; d = d_v = 64, 128 or 256; heads at most 64. Returns before it is done (target.h);
// status 1 for a shape outside of these.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/attention_gpu.h"

namespace iha::kernels {

inline constexpr uint32_t kTalkingGpuThreads = 256;  // of the mixes
inline constexpr uint32_t kTalkingGpuMaxHeads = 64;

struct TalkingHeadsGpuArgs {
  AttentionGpuArgs attention = {};
  const float* pre = nullptr;   // [heads][heads], from row to column
  const float* post = nullptr;  // the same
  float* scores = nullptr;      // scratch: TalkingHeadsGpuScratch(args) floats
  uint32_t block_rows = 0;      // rows of a sequence at a time: a multiple of 64, or max_rows to 64 where those are all
  uint32_t first_row = 0;       // set by the launcher
};

IHA_HOST_DEVICE constexpr uint32_t TalkingHeadsGpuStride(const TalkingHeadsGpuArgs& a) {
  return (a.attention.max_keys + kGpuKeyBlock - 1) / kGpuKeyBlock * kGpuKeyBlock;
}
constexpr size_t TalkingHeadsGpuScratch(const TalkingHeadsGpuArgs& a) {
  return size_t{a.attention.sequences} * a.block_rows * a.attention.heads * TalkingHeadsGpuStride(a);
}

// block_rows for scratch of at most so many bytes, if 64 rows (or all, where there are fewer) fit into it.
constexpr uint32_t TalkingHeadsGpuRowsFor(const AttentionGpuArgs& a, size_t scratch_bytes) {
  if (a.max_rows <= 64) return a.max_rows;
  TalkingHeadsGpuArgs one{};
  one.attention = a;
  one.block_rows = 64;
  const size_t most = (a.max_rows + 63) / 64, least_bytes = TalkingHeadsGpuScratch(one) * sizeof(float);
  const size_t fit = least_bytes == 0 ? most : scratch_bytes / least_bytes;
  return static_cast<uint32_t>(fit < 1 ? 1 : fit < most ? fit : most) * 64;
}

// Shared memory of a block: of the mixes, for heads filled up to 8, 16, 32 or 64, both matrices and two values a head;
// of the values, 64 rows of output and two stages of 64 keys. Scores need less.
constexpr size_t TalkingMixesGpuSharedBytes(uint32_t heads) {
  uint32_t filled = 8;
  while (filled < heads) filled *= 2;
  return (2 * size_t{filled} * filled + 2 * filled) * sizeof(float);
}
constexpr size_t TalkingValuesGpuSharedBytes(uint32_t d) { return (64 + 2 * size_t{kGpuKeyBlock}) * d * 2; }

GpuStatus TalkingHeadsGpu(const TalkingHeadsGpuArgs& args, GpuStream stream);

// Its kernels, for block_rows rows from first_row on: kD 64, 128 or 256, kHeads 8, 16, 32 or 64.
template <uint32_t kD>
GpuStatus LaunchTalkingScores(const TalkingHeadsGpuArgs& args, GpuStream stream);
template <uint32_t kHeads>
GpuStatus LaunchTalkingMixes(const TalkingHeadsGpuArgs& args, GpuStream stream);
template <uint32_t kD>
GpuStatus LaunchTalkingValues(const TalkingHeadsGpuArgs& args, GpuStream stream);

}  // namespace iha::kernels
