// matrix.h: the arithmetic and the fragment layouts of a warp's matrix instructions (PTX ISA, "Warp-level matrix
// instructions"), for all 32 lanes at once. Internal to the emulator.
//
// mma: D = A B + C, A 16 x K row-major, B K x 8, C and D 16 x 8 fp32. Order: per element acc = c; acc = acc + a_k b_k
// in increasing k, product and sum rounded to fp32 (products of 16-bit values are exact unless they under- or
// overflow). Pure functions.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/simt/order.h"

namespace iha::kernels::simt {

enum class MmaType { kBF16, kF16, kTF32 };

// One lane's registers; c is read and written.
struct MmaLane {
  const uint32_t* a = nullptr;  // [4]
  const uint32_t* b = nullptr;  // [2]
  float* c = nullptr;           // [4]
};
void Mma(MmaType type, const std::array<MmaLane, kWarpSize>& lanes);

// Where the halves of lane's register for one 8 x 8 matrix of 16-bit values come from: rows and columns.
struct MatrixElement {
  uint32_t row = 0;
  uint32_t column = 0;
};
constexpr MatrixElement MatrixHalf(uint32_t lane, uint32_t half, bool transposed) {
  const uint32_t outer = lane / 4, inner = lane % 4 * 2 + half;
  return transposed ? MatrixElement{inner, outer} : MatrixElement{outer, inner};
}

uint16_t FloatToHalf(float x);
float HalfToFloat(uint16_t bits);

}  // namespace iha::kernels::simt
