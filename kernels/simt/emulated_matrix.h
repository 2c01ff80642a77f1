// emulated_matrix.h: ldmatrix, stmatrix, mma and number formats of ptx.h under the emulator.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/simt/emulated_warp.h"
#include "kernels/simt/matrix.h"
#include "kernels/support/small_float.h"

namespace iha::kernels::ptx {

// Row r of matrix m lies at the address of lane 8 m + r: 16 bytes, at a multiple of 16.
struct MatrixOperand {
  int64_t offset = 0;
  uint32_t* registers = nullptr;
};

// Calls move(register, element's offset, lane) for both halves of every register.
template <class In, class Move>
void ForMatrixHalves(int matrices, bool transposed, In in, Move move) {
  for (int m = 0; m < matrices; ++m) {
    for (uint32_t lane = 0; lane < simt::kWarpSize; ++lane) {
      for (uint32_t half = 0; half < 2; ++half) {
        const simt::MatrixElement e = simt::MatrixHalf(lane, half, transposed);
        move(m, lane, half, in(static_cast<uint32_t>(m) * 8 + e.row).offset + e.column * 2);
      }
    }
  }
}

// Alignment, and the cycles that rows of one matrix in the same banks cost: 8 groups of 4 banks, a row fills one.
template <class In>
void CheckMatrixRows(int matrices, In in, const char* name, const Site& at) {
  simt::Block& block = simt::Block::Current();
  for (uint32_t m = 0; m < static_cast<uint32_t>(matrices); ++m) {
    uint32_t rows[8] = {}, worst = 1;
    for (uint32_t r = 0; r < 8; ++r) {
      const int64_t offset = in(m * 8 + r).offset;
      if (offset % 16 != 0) {
        block.FailLane(
            m * 8 + r, simt::ErrorKind::kMisaligned, at,
            std::string(name) + " of a row at shared byte " + std::to_string(offset) + ", expected a multiple of 16");
      }
      bool repeated = false;
      for (uint32_t before = 0; before < r; ++before) repeated |= in(m * 8 + before).offset == offset;
      if (!repeated) worst = std::max(worst, ++rows[offset / 16 % 8 & 7]);
    }
    block.counters().matrix_bank_conflicts += worst - 1;
  }
}

template <int kMatrices, bool kTransposed, class T>
void LdMatrix(uint32_t (&registers)[kMatrices], Shared<T> row, const Site& at = Here::current()) {
  static_assert(kMatrices == 1 || kMatrices == 2 || kMatrices == 4);
  Together<MatrixOperand, char>(
      {"LdMatrix", kAllLanes, kMatrices * 2 + kTransposed, true}, at, MatrixOperand{row.offset(), registers},
      [&](uint32_t, auto in, auto) {
        CheckMatrixRows(kMatrices, in, "LdMatrix", at);
        simt::Block& block = simt::Block::Current();
        if constexpr (!kTransposed) {  // both halves lie side by side: one access
          for (uint32_t m = 0; m < kMatrices; ++m) {
            for (uint32_t lane = 0; lane < simt::kWarpSize; ++lane) {
              const int64_t offset = in(m * 8 + lane / 4).offset + lane % 4 * 4;
              std::memcpy(&in(lane).registers[m], block.Shared(simt::Block::Access::kRead, offset, 4, 4, at, lane), 4);
            }
          }
        } else {
          ForMatrixHalves(kMatrices, kTransposed, in, [&](int m, uint32_t lane, uint32_t half, int64_t offset) {
            uint16_t value;
            std::memcpy(&value, block.Shared(simt::Block::Access::kRead, offset, 2, 2, at, lane), 2);
            uint32_t& to = in(lane).registers[m];
            to = half == 0 ? value : to | uint32_t{value} << 16;
          });
        }
      });
}

template <int kMatrices, bool kTransposed, class T>
void StMatrix(Shared<T> row, const uint32_t (&registers)[kMatrices], const Site& at = Here::current()) {
  static_assert(kMatrices == 1 || kMatrices == 2 || kMatrices == 4);
  Together<MatrixOperand, char>(
      {"StMatrix", kAllLanes, kMatrices * 2 + kTransposed, true}, at,
      MatrixOperand{row.offset(), const_cast<uint32_t*>(registers)}, [&](uint32_t, auto in, auto) {
        CheckMatrixRows(kMatrices, in, "StMatrix", at);
        simt::Block& block = simt::Block::Current();
        ForMatrixHalves(kMatrices, kTransposed, in, [&](int m, uint32_t lane, uint32_t half, int64_t offset) {
          const uint16_t value = static_cast<uint16_t>(in(lane).registers[m] >> (16 * half));
          std::memcpy(block.Shared(simt::Block::Access::kWrite, offset, 2, 2, at, lane), &value, 2);
        });
      });
}

inline void MmaTogether(const char* name, simt::MmaType type, float (&c)[4], const uint32_t (&a)[4],
                        const uint32_t (&b)[2], const Site& at) {
  Together<simt::MmaLane, char>({name, kAllLanes, 0, true}, at, simt::MmaLane{a, b, c}, [&](uint32_t, auto in, auto) {
    std::array<simt::MmaLane, simt::kWarpSize> lanes;
    for (uint32_t lane = 0; lane < simt::kWarpSize; ++lane) lanes[lane] = in(lane);
    simt::Mma(type, lanes);
    simt::Counters& counters = simt::Block::Current().counters();
    ++counters.mma;
    counters.mma_multiply_adds += 16 * 8 * (type == simt::MmaType::kTF32 ? 8 : 16);
  });
}
inline void MmaBF16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], const Site& at = Here::current()) {
  MmaTogether("MmaBF16", simt::MmaType::kBF16, c, a, b, at);
}
inline void MmaF16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], const Site& at = Here::current()) {
  MmaTogether("MmaF16", simt::MmaType::kF16, c, a, b, at);
}
inline void MmaTF32(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], const Site& at = Here::current()) {
  MmaTogether("MmaTF32", simt::MmaType::kTF32, c, a, b, at);
}

inline float BF16ToFloat(uint16_t bits) { return WidenBF16(bits); }
inline uint16_t FloatToBF16(float x) { return RoundToBF16(x); }
inline uint32_t PackBF16(float low, float high) { return FloatToBF16(low) | uint32_t{FloatToBF16(high)} << 16; }
inline float LowBF16(uint32_t pair) { return WidenBF16(static_cast<uint16_t>(pair)); }
inline float HighBF16(uint32_t pair) { return WidenBF16(static_cast<uint16_t>(pair >> 16)); }
inline uint32_t PackF16(float low, float high) {
  return simt::FloatToHalf(low) | uint32_t{simt::FloatToHalf(high)} << 16;
}
// fp32 to tf32 (10 bits of mantissa), ties away from zero; infinities and NaN stay what they are.
inline uint32_t ToTF32(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  return (u & 0x7F800000u) == 0x7F800000u ? u : (u + 0x1000u) & 0xFFFFE000u;
}
inline float Exp2(float x) { return std::exp2(x); }
inline float Rsqrt(float x) { return 1.0f / std::sqrt(x); }

}  // namespace iha::kernels::ptx
