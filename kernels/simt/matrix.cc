#include "kernels/simt/matrix.h"

#include <bit>

#include "kernels/support/small_float.h"

namespace iha::kernels::simt {
namespace {

constexpr uint32_t kM = 16, kN = 8;

// acc += A B, one k after another; 8 columns side by side.
template <uint32_t kK>
void MultiplyAdd(const float (&a)[kM][kK], const float (&b)[kK][kN], float (&c)[kM][kN]) {
  for (uint32_t i = 0; i < kM; ++i) {
    for (uint32_t k = 0; k < kK; ++k) {
      const float x = a[i][k];
      for (uint32_t j = 0; j < kN; ++j) c[i][j] += x * b[k][j];
    }
  }
}

// m16n8k16: register r of A holds row group (+8 if r is odd), columns 2 t, 2 t + 1 (+8 if r >= 2); of B rows 2 t, 2 t +
// 1
// (+8 if r = 1), column group; group = lane / 4, t = lane % 4.
template <class Widen>
void Mma16(const std::array<MmaLane, kWarpSize>& lanes, float (&c)[kM][kN], Widen widen) {
  float a[kM][16], b[16][kN];
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
    const uint32_t group = lane / 4, t = lane % 4;
    for (uint32_t half = 0; half < 2; ++half) {
      const auto part = [half](uint32_t pair) { return static_cast<uint16_t>(pair >> (16 * half)); };
      for (uint32_t r = 0; r < 4; ++r) a[group + r % 2 * 8][t * 2 + half + r / 2 * 8] = widen(part(lanes[lane].a[r]));
      for (uint32_t r = 0; r < 2; ++r) b[t * 2 + half + r * 8][group] = widen(part(lanes[lane].b[r]));
    }
  }
  MultiplyAdd(a, b, c);
}

// m16n8k8: register r of A holds row group (+8 if r is odd), column t (+4 if r >= 2); of B row t (+4 if r = 1). The low
// 13 bits of a tf32 operand are ignored.
void Mma8(const std::array<MmaLane, kWarpSize>& lanes, float (&c)[kM][kN]) {
  const auto widen = [](uint32_t bits) { return std::bit_cast<float>(bits & 0xFFFFE000u); };
  float a[kM][8], b[8][kN];
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
    const uint32_t group = lane / 4, t = lane % 4;
    for (uint32_t r = 0; r < 4; ++r) a[group + r % 2 * 8][t + r / 2 * 4] = widen(lanes[lane].a[r]);
    for (uint32_t r = 0; r < 2; ++r) b[t + r * 4][group] = widen(lanes[lane].b[r]);
  }
  MultiplyAdd(a, b, c);
}

}  // namespace

void Mma(MmaType type, const std::array<MmaLane, kWarpSize>& lanes) {
  float c[kM][kN];
  const auto each = [&lanes, &c](auto move) {
    for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
      for (uint32_t r = 0; r < 4; ++r) move(lanes[lane].c[r], c[lane / 4 + r / 2 * 8][lane % 4 * 2 + r % 2]);
    }
  };
  each([](float& mine, float& all) { all = mine; });
  switch (type) {
    case MmaType::kBF16:
      Mma16(lanes, c, [](uint16_t bits) { return WidenBF16(bits); });
      break;
    case MmaType::kF16:
      Mma16(lanes, c, [](uint16_t bits) { return HalfToFloat(bits); });
      break;
    case MmaType::kTF32:
      Mma8(lanes, c);
      break;
  }
  each([](float& mine, float& all) { mine = all; });
}

float HalfToFloat(uint16_t bits) { return WidenF16(bits); }

uint16_t FloatToHalf(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x), sign = u >> 16 & 0x8000u, magnitude = u & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7FFFu);   // NaN
  if (magnitude >= 0x477FF000u) return static_cast<uint16_t>(sign | 0x7C00u);  // from 65520 on it rounds to infinity
  if (magnitude < 0x38800000u) {  // below 2^-14: a multiple of 2^-24, rounded by an addition that ends there
    const float scaled = std::bit_cast<float>(magnitude) + 0.5f;  // ulp of [0.5, 1) is 2^-24
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(scaled) - 0x3F000000u));
  }
  const uint32_t rebased = magnitude - (112u << 23);
  return static_cast<uint16_t>(sign | ((rebased + 0xFFFu + (rebased >> 13 & 1u)) >> 13));
}

}  // namespace iha::kernels::simt
