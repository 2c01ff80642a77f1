// device_math.h: small pieces that several kernels share, over ptx.h.
//
// Eight16 is 16 bytes of bf16, the width in which kernels read and write rows. Functions of one thread, or of the lanes
// that the comment names; values in fp32.
#pragma once

#include <cstring>

#include "kernels/simt/ptx.h"

namespace iha::kernels {

using Eight16 = ptx::Pack<uint32_t, 4>;

IHA_DEVICE void Widen(const Eight16& from, float (&to)[8]) {
  for (int i = 0; i < 4; ++i) {
    to[2 * i] = ptx::LowBF16(from.v[i]);
    to[2 * i + 1] = ptx::HighBF16(from.v[i]);
  }
}
IHA_DEVICE Eight16 Narrow(const float (&from)[8]) {
  Eight16 to;
  for (int i = 0; i < 4; ++i) to.v[i] = ptx::PackBF16(from[2 * i], from[2 * i + 1]);
  return to;
}

// (u, v) turned by the angle of cosine c and sine s.
IHA_DEVICE void Rotate(float& u, float& v, float c, float s) {
  const float turned = fmaf(u, c, -(v * s));
  v = fmaf(v, c, u * s);
  u = turned;
}

// The same bits as another type of the same size.
template <class To, class From>
IHA_DEVICE To BitsAs(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

// Of a pair of bf16: whether one of them is an infinity; and the pair with 0 in place of infinities (NaN stay). Low
// parts of factors in two parts are multiplied with that: 0, or another sign, times an infinity would be NaN.
IHA_DEVICE bool HasInfinity(uint32_t pair) {
  return (pair & 0x7FFFu) == 0x7F80u || (pair & 0x7FFF0000u) == 0x7F800000u;
}
IHA_DEVICE uint32_t WithoutInfinities(uint32_t pair) {
  if ((pair & 0x7FFFu) == 0x7F80u) pair &= 0xFFFF0000u;
  if ((pair & 0x7FFF0000u) == 0x7F800000u) pair &= 0xFFFFu;
  return pair;
}

// Byte of 16-byte chunk `chunk` of row `row` in a tile of shared memory with kColumns values of 16 bits a row: chunks
// of a group of 8 are exchanged by the row's number, so that ldmatrix, and stores of a column of chunks, meet no bank
// twice.
template <uint32_t kColumns>
IHA_DEVICE uint32_t TileChunk(uint32_t row, uint32_t chunk) {
  static_assert(kColumns % 64 == 0);
  return row * (kColumns * 2) + ((chunk ^ (row & 7)) << 4);
}

// The sum over `width` lanes next to each other (a power of two), pairs at distance width / 2 first; the same bits in
// all.
IHA_DEVICE float SumLanes(float v, uint32_t width = 32) {
  for (uint32_t step = width / 2; step > 0; step /= 2) v += ptx::ShflXor(ptx::kAllLanes, v, step);
  return v;
}

}  // namespace iha::kernels
