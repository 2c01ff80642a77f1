// tensor.h: element types and read-only views of stored tensors.
//
// A view points into a mapped file: it is valid while its Safetensors / Checkpoint lives. Row-major, little endian, not
// necessarily aligned to the element size (files decide): copy with memcpy or WidenToF32, never cast and dereference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace iha::checkpoint {

enum class DType { kF32, kF16, kBF16, kF64, kI64, kI32, kI8, kU8, kBool };
const char* NameOf(DType dtype);  // as safetensors writes it: "F32", "BF16", "BOOL", ...
std::optional<DType> ParseDType(std::string_view name);
int64_t SizeOf(DType dtype);  // bytes of one element

struct TensorView {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // empty = scalar
  std::span<const std::byte> bytes;
  // Checked at load: the product does not overflow and equals bytes.size() / SizeOf(dtype).
  int64_t elements() const;
};

// "[2, 3]"
std::string ShapeText(std::span<const int64_t> shape);

// Exact widening of F32, F16 or BF16 to float. InvalidArgument for other dtypes or if out.size() != elements().
absl::Status WidenToF32(const TensorView& tensor, std::span<float> out);
float F16ToF32(uint16_t bits);
float BF16ToF32(uint16_t bits);
// Round to nearest, ties to even; NaN stays a quiet NaN.
uint16_t F32ToBF16(float value);

}  // namespace iha::checkpoint
