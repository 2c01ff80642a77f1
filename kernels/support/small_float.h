// small_float.h: storage types of weights and caches, and their exact conversions.
//
// Widening is exact for every value (NaN stays NaN, subnormals included). Narrowing rounds to nearest, ties to even;
// NaN becomes a quiet NaN. Pure functions, any thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace iha::kernels {

enum class StorageType { kF32, kBF16, kF16 };

constexpr size_t StorageBytes(StorageType type) { return type == StorageType::kF32 ? 4 : 2; }

constexpr float WidenBF16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

constexpr uint16_t RoundToBF16(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  if ((u & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>((u >> 16) | 0x0040u);
  return static_cast<uint16_t>((u + 0x7FFFu + ((u >> 16) & 1u)) >> 16);
}

constexpr float WidenF16(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t exponent = (bits >> 10) & 0x1Fu;
  const uint32_t mantissa = bits & 0x3FFu;
  if (exponent == 0x1F) {  // infinity, or NaN made quiet as the hardware conversion does
    return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13) | (mantissa != 0 ? 0x00400000u : 0u));
  }
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  // Subnormal: mantissa * 2^-24, exact in fp32.
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

}  // namespace iha::kernels
