// affine_blocks.h: 16 fp32 values as scale, offset and 16 small integers, where that keeps every bit.
//
//   value[i] = fma(scale, q[i], offset)                                                              (fp32)
//
// Weights that came out of a quantised file are of this form, rounding included: scale * q is exact in fp32 (a scale of
// at most 19 significant bits, a q of 5 or 7 bits), so that the file's product and sum are one fma. Types without
// a minimum (Q4_0, Q5_0, Q6_K, Q8_0) take the offset -0: a q of 0 then is a zero with the sign of the scale, as
// stored. What is found is checked bit for bit: a solution that is none cannot be returned. Some that exist are not
// found, with an offset hundreds of steps from zero: quantisers keep zero within a group's range.
//
// Pure functions on any thread, nothing is kept but in the caller's hints. Source of the types: ggml-quants of the
// `gguf` package (model/checkpoint/gguf/ggml_types.cc).
#pragma once

#include <cstddef>
#include <cstdint>

namespace iha::kernels {

inline constexpr size_t kAffineBlock = 16;

struct AffineBlock {
  float scale = 0, offset = 0;
  int8_t q[kAffineBlock] = {};
};

// What the blocks before were like: the order of the search, never its result's values. One per thread and tensor.
struct AffineHints {
  float scale = 0, offset = 0;  // of the block before
  bool symmetric = false;       // offset -0
  int largest_q = 8;            // symmetric: no |q| was larger (or it was of no type yet)
  bool five_bits = false;       // others: q spanned more than 15
};

// Blocks of 16 consecutive values of one row, ceil(n / 16) of them; the last may be shorter, and its other q are 0.
// False: some block has no such form (infinities and NaN have none either); blocks[] is then partly written.
// ±0: the sign counts.
bool FindAffineBlocks(const float* values, size_t n, AffineHints& hints, AffineBlock* blocks);

}  // namespace iha::kernels
