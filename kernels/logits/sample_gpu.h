// sample_gpu.h: one token from each row of fp32 logits, by the rules of the CPU's sampler and with its bits, on the
// device.
//
// Per row, in this order: a NaN anywhere is kSampleNan. Ids outside of `allowed` (if any is), and `forbidden` ones, are
// taken out; the rest is ordered by logit, largest first, ties (+0 is -0) by lowest id. Temperature 0: the first of
// that order. Else weights ExpNeg((x - max) / T) in fp32 (NUM-8; no division when T = 1); top_k > 0: the first top_k
// stay; top_p < 1: of those the shortest prefix whose weights, added one by one in that order in double, reach top_p
// times their total; then the first id whose running sum, in increasing id, exceeds uniform times the total of what
// stays. Totals in double: blocks of 256 ids, in each 8 lanes S[i mod 8] folded 4, 2, 1, blocks one after another.
// Equal logits and rules give the CPU's token: every rounded operation is one that the CPU does, in the same order.
//
// What stays is always a prefix of the order, so that the kernel keeps no weights: it finds the last key that stays (a
// radix selection over 64-bit keys, 8 bits a pass, as many passes as the row needs; top_p in sorted pieces of
// kSampleGpuPiece keys) and computes weights again where it needs them. Temperature 0 reads the logits once, sampling
// without top_k and top_p twice and a block of 256; `masked` is written and read instead where there are ids. All rules
// lie in device memory. The weight of a temperature that rounds to 0 in fp32 is the CPU's too (NaN or 0: a bug of the
// caller). n at most kSampleGpuMaxN. A block a row; rows are independent. Returns before it is done (target.h); status
// 1 for a shape outside of these.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/simt/target.h"

namespace iha::kernels {

inline constexpr int32_t kSampleNan = -1;       // a logit is NaN
inline constexpr int32_t kSampleNothing = -2;   // nothing is left that can be drawn
inline constexpr int32_t kSampleInfinite = -3;  // the largest logit left is infinite

struct SampleGpuArgs {
  const float* logits = nullptr;       // [rows][ld]
  int32_t* tokens = nullptr;           // [rows]: an id, or one of the above
  const float* temperature = nullptr;  // [rows]
  const uint32_t* top_k = nullptr;     // [rows], 0: all
  const double* top_p = nullptr;       // [rows], above 0, 1: all
  const double* uniform = nullptr;     // [rows], in [0, 1); not read at temperature 0
  // Row r's allowed ids: ids[id_begin[2 r]] up to id_begin[2 r + 1], its forbidden ones from there up to
  // id_begin[2 r + 2]; ids may repeat. id_begin null: no row has any.
  const int32_t* ids = nullptr;
  const uint32_t* id_begin = nullptr;
  float* masked = nullptr;  // scratch [rows][n]; may be null if id_begin is
  uint32_t rows = 0;
  uint32_t n = 0;
  uint32_t ld = 0;
};

inline constexpr uint32_t kSampleGpuThreads = 512;
inline constexpr uint32_t kSampleGpuPiece = 1024;  // keys, sorted in shared memory
inline constexpr uint32_t kSampleGpuBlock = 256;   // ids of one sum
inline constexpr uint32_t kSampleGpuMaxN = 1u << 21;
// Keys and their weights; 256 counts; sums of blocks; a few values.
constexpr size_t SampleGpuSharedBytes(uint32_t n) {
  return kSampleGpuPiece * 12 + 256 * 4 + size_t{(n + kSampleGpuBlock - 1) / kSampleGpuBlock} * 8 + 32 +
         kSampleGpuThreads / 32 * 8;
}

GpuStatus SampleGpu(const SampleGpuArgs& args, GpuStream stream);
// One row of args whose pointers are the host's, by the rules as they stand above: the whole order sorted, every weight
// kept. tokens and masked are not used.
int32_t SampleRef(const SampleGpuArgs& args, uint32_t row);

}  // namespace iha::kernels
