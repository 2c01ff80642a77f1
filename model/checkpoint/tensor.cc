#include "model/checkpoint/tensor.h"

#include <fmt/ranges.h>

#include <array>
#include <bit>
#include <cstring>

#include "common/errors.h"

namespace iha::checkpoint {
namespace {

struct DTypeRow {
  DType dtype;
  const char* name;
  int64_t size;
};
constexpr std::array<DTypeRow, 9> kDTypes{{{DType::kF32, "F32", 4},
                                           {DType::kF16, "F16", 2},
                                           {DType::kBF16, "BF16", 2},
                                           {DType::kF64, "F64", 8},
                                           {DType::kI64, "I64", 8},
                                           {DType::kI32, "I32", 4},
                                           {DType::kI8, "I8", 1},
                                           {DType::kU8, "U8", 1},
                                           {DType::kBool, "BOOL", 1}}};

template <float (*kWiden)(uint16_t)>
void WidenHalf(std::span<const std::byte> bytes, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, bytes.data() + 2 * i, 2);
    out[i] = kWiden(bits);
  }
}

}  // namespace

const char* NameOf(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].name; }
int64_t SizeOf(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].size; }

std::optional<DType> ParseDType(std::string_view name) {
  for (const DTypeRow& row : kDTypes) {
    if (name == row.name) return row.dtype;
  }
  return std::nullopt;
}

int64_t TensorView::elements() const { return static_cast<int64_t>(bytes.size()) / SizeOf(dtype); }

std::string ShapeText(std::span<const int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

float BF16ToF32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

float F16ToF32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t fraction = bits & 0x3ff;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;  // subnormal or zero: exact in float
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  const uint32_t widened = exponent == 31 ? 0xffu : exponent + (127 - 15);
  return std::bit_cast<float>(sign | widened << 23 | fraction << 13);
}

uint16_t F32ToBF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

absl::Status WidenToF32(const TensorView& tensor, std::span<float> out) {
  if (static_cast<int64_t>(out.size()) != tensor.elements()) {
    return InvalidArgument("cannot widen {} elements into {}", tensor.elements(), out.size());
  }
  switch (tensor.dtype) {
    case DType::kF32:
      if (!out.empty()) std::memcpy(out.data(), tensor.bytes.data(), tensor.bytes.size());
      return absl::OkStatus();
    case DType::kF16:
      WidenHalf<F16ToF32>(tensor.bytes, out);
      return absl::OkStatus();
    case DType::kBF16:
      WidenHalf<BF16ToF32>(tensor.bytes, out);
      return absl::OkStatus();
    default:
      return InvalidArgument("dtype {} does not widen to F32 (expected F32, F16 or BF16)", NameOf(tensor.dtype));
  }
}

}  // namespace iha::checkpoint
