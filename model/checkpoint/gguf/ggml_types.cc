#include "model/checkpoint/gguf/ggml_types.h"

#include <array>
#include <cstring>

#include "model/checkpoint/tensor.h"

namespace iha::checkpoint {
namespace {

uint16_t Load16(const std::byte* bytes) {
  uint16_t value;
  std::memcpy(&value, bytes, 2);
  return value;
}

void F32(const std::byte* block, float* out) { std::memcpy(out, block, 4); }
void F16(const std::byte* block, float* out) { *out = F16ToF32(Load16(block)); }
void BF16(const std::byte* block, float* out) { *out = BF16ToF32(Load16(block)); }

// 32 quants of 4 bits: byte i holds element i (low half) and element i + 16 (high half).
void Q4_0(const std::byte* block, float* out) {
  const float scale = F16ToF32(Load16(block));
  for (int i = 0; i < 16; ++i) {
    const int pair = std::to_integer<int>(block[2 + i]);
    out[i] = scale * static_cast<float>((pair & 15) - 8);
    out[i + 16] = scale * static_cast<float>((pair >> 4) - 8);
  }
}

void Q4_1(const std::byte* block, float* out) {
  const float scale = F16ToF32(Load16(block)), minimum = F16ToF32(Load16(block + 2));
  for (int i = 0; i < 16; ++i) {
    const int pair = std::to_integer<int>(block[4 + i]);
    out[i] = scale * static_cast<float>(pair & 15) + minimum;
    out[i + 16] = scale * static_cast<float>(pair >> 4) + minimum;
  }
}

// 32 quants of 5 bits: as Q4_0, and bit i of a 32-bit word is the fifth bit of element i.
void FiveBits(const std::byte* high_word, const std::byte* nibbles, int (&quants)[32]) {
  uint32_t high;
  std::memcpy(&high, high_word, 4);
  for (int i = 0; i < 16; ++i) {
    const int pair = std::to_integer<int>(nibbles[i]);
    quants[i] = (pair & 15) | static_cast<int>(high >> i & 1) << 4;
    quants[i + 16] = (pair >> 4) | static_cast<int>(high >> (i + 16) & 1) << 4;
  }
}

void Q5_0(const std::byte* block, float* out) {
  const float scale = F16ToF32(Load16(block));
  int quants[32];
  FiveBits(block + 2, block + 6, quants);
  for (int i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(quants[i] - 16);
}

void Q5_1(const std::byte* block, float* out) {
  const float scale = F16ToF32(Load16(block)), minimum = F16ToF32(Load16(block + 2));
  int quants[32];
  FiveBits(block + 4, block + 8, quants);
  for (int i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(quants[i]) + minimum;
}

void Q8_0(const std::byte* block, float* out) {
  const float scale = F16ToF32(Load16(block));
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(static_cast<int8_t>(block[2 + i])) * scale;
}

// The K types: 256 elements in 8 groups of 32 (Q6_K: 16 of 16) that share two halves and have small scales of their
// own.
struct GroupScale {
  float scale;
  float minimum;
};

// Scale and minimum of group g, 6 bits each, out of 12 bytes: groups 0..3 lie in the low bits of bytes 0..3 (scale) and
// 4..7 (minimum); groups 4..7 in the nibbles of bytes 8..11, with their two high bits on top of the former.
GroupScale ScaleOf(const std::byte* block, int group) {
  const std::byte* packed = block + 4;
  const auto at = [packed](int i) { return std::to_integer<int>(packed[i]); };
  int scale = at(group & 3) & 63, minimum = at(4 + (group & 3)) & 63;
  if (group >= 4) {
    scale = (at(4 + group) & 15) | (at(group - 4) >> 2 & 48);
    minimum = (at(4 + group) >> 4) | (at(group) >> 2 & 48);
  }
  return {F16ToF32(Load16(block)) * static_cast<float>(scale),
          F16ToF32(Load16(block + 2)) * static_cast<float>(minimum)};
}

void Q4_K(const std::byte* block, float* out) {
  for (int group = 0; group < 8; ++group) {
    const GroupScale of = ScaleOf(block, group);
    const std::byte* bytes = block + 16 + group / 2 * 32;
    for (int i = 0; i < 32; ++i) {
      const int quant = std::to_integer<int>(bytes[i]) >> 4 * (group % 2) & 15;
      out[group * 32 + i] = of.scale * static_cast<float>(quant) - of.minimum;
    }
  }
}

// As Q4_K; bit g of high byte i is the fifth bit of element i of group g.
void Q5_K(const std::byte* block, float* out) {
  const std::byte* high = block + 16;
  for (int group = 0; group < 8; ++group) {
    const GroupScale of = ScaleOf(block, group);
    const std::byte* bytes = block + 48 + group / 2 * 32;
    for (int i = 0; i < 32; ++i) {
      const int low = std::to_integer<int>(bytes[i]) >> 4 * (group % 2) & 15;
      const int quant = low | (std::to_integer<int>(high[i]) >> group & 1) << 4;
      out[group * 32 + i] = of.scale * static_cast<float>(quant) - of.minimum;
    }
  }
}

// Two halves of 128 elements: four bits from 64 bytes, two bits from 32 bytes, one signed scale for 16 elements.
void Q6_K(const std::byte* block, float* out) {
  const std::byte *low = block, *high = block + 128, *scales = block + 192;
  const float super = F16ToF32(Load16(block + 208));
  for (int group = 0; group < 8; ++group) {
    const int half = group / 4, part = group % 4;
    for (int i = 0; i < 32; ++i) {
      const int four = std::to_integer<int>(low[half * 64 + part % 2 * 32 + i]) >> 4 * (part / 2) & 15;
      const int two = std::to_integer<int>(high[half * 32 + i]) >> 2 * part & 3;
      const auto scale = static_cast<int8_t>(scales[group * 2 + i / 16]);
      out[group * 32 + i] = super * static_cast<float>(scale) * static_cast<float>((four | two << 4) - 32);
    }
  }
}

constexpr std::array<GgmlTypeRow, 11> kSupported{{{0, "F32", 1, 4, F32},
                                                  {1, "F16", 1, 2, F16},
                                                  {30, "BF16", 1, 2, BF16},
                                                  {2, "Q4_0", 32, 18, Q4_0},
                                                  {3, "Q4_1", 32, 20, Q4_1},
                                                  {6, "Q5_0", 32, 22, Q5_0},
                                                  {7, "Q5_1", 32, 24, Q5_1},
                                                  {8, "Q8_0", 32, 34, Q8_0},
                                                  {12, "Q4_K", 256, 144, Q4_K},
                                                  {13, "Q5_K", 256, 176, Q5_K},
                                                  {14, "Q6_K", 256, 210, Q6_K}}};

struct NamedId {
  uint32_t id;
  const char* name;
};
constexpr NamedId kOthers[] = {
    {9, "Q8_1"},   {10, "Q2_K"},   {11, "Q3_K"},  {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"},
    {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"}, {23, "IQ4_XS"},  {24, "I8"},     {25, "I16"},
    {26, "I32"},   {27, "I64"},    {28, "F64"},   {29, "IQ1_M"}, {34, "TQ1_0"},   {35, "TQ2_0"},  {39, "MXFP4"}};

}  // namespace

GgmlType GgmlTypeOf(uint32_t id) {
  for (const GgmlTypeRow& row : kSupported) {
    if (row.id == id) return {id, &row};
  }
  return {id, nullptr};
}

std::string SupportedGgmlTypes() {
  std::string names;
  for (const GgmlTypeRow& row : kSupported) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

const char* NameOf(GgmlType type) {
  if (type.row != nullptr) return type.row->name;
  for (const NamedId& other : kOthers) {
    if (other.id == type.id) return other.name;
  }
  return "unknown";
}

void Dequantise(GgmlType type, std::span<const std::byte> bytes, std::span<float> out) {
  const std::byte* block = bytes.data();
  for (size_t i = 0; i < out.size(); i += static_cast<size_t>(type.row->block_elements)) {
    type.row->dequantise(block, out.data() + i);
    block += type.row->block_bytes;
  }
}

}  // namespace iha::checkpoint
