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

void Q8_0(const std::byte* block, float* out) {
  const float scale = F16ToF32(Load16(block));
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(static_cast<int8_t>(block[2 + i])) * scale;
}

constexpr std::array<GgmlTypeRow, 6> kSupported{{{0, "F32", 1, 4, F32},
                                                 {1, "F16", 1, 2, F16},
                                                 {30, "BF16", 1, 2, BF16},
                                                 {8, "Q8_0", 32, 34, Q8_0},
                                                 {2, "Q4_0", 32, 18, Q4_0},
                                                 {3, "Q4_1", 32, 20, Q4_1}}};

struct NamedId {
  uint32_t id;
  const char* name;
};
constexpr NamedId kOthers[] = {
    {6, "Q5_0"},   {7, "Q5_1"},   {9, "Q8_1"},     {10, "Q2_K"},   {11, "Q3_K"},    {12, "Q4_K"},  {13, "Q5_K"},
    {14, "Q6_K"},  {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"},
    {21, "IQ3_S"}, {22, "IQ2_S"}, {23, "IQ4_XS"},  {24, "I8"},     {25, "I16"},     {26, "I32"},   {27, "I64"},
    {28, "F64"},   {29, "IQ1_M"}, {34, "TQ1_0"},   {35, "TQ2_0"},  {39, "MXFP4"}};

}  // namespace

GgmlType GgmlTypeOf(uint32_t id) {
  for (const GgmlTypeRow& row : kSupported) {
    if (row.id == id) return {id, &row};
  }
  return {id, nullptr};
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
