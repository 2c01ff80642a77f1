// ggml_types.h: block formats of GGUF tensors, and their exact values as float.
//
// Values equal those of the `gguf` Python package bit for bit: scale * quant (+ minimum), each operation rounded once
// to float (K types: scale and minimum of a group are themselves products, rounded once). Pure; thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace iha::checkpoint {

struct GgmlTypeRow {
  uint32_t id;
  const char* name;
  int64_t block_elements;
  int64_t block_bytes;
  void (*dequantise)(const std::byte* block, float* out);  // one block
};

struct GgmlType {
  uint32_t id = 0;
  const GgmlTypeRow* row = nullptr;  // null: known by name at most, not supported
};

GgmlType GgmlTypeOf(uint32_t id);
std::string SupportedGgmlTypes();   // "F32, F16, ...", for messages
const char* NameOf(GgmlType type);  // "Q4_1"; "unknown" for ids that GGUF does not define

// out.size() is a multiple of the block's elements and bytes.size() fits it (both are checked by the reader).
void Dequantise(GgmlType type, std::span<const std::byte> bytes, std::span<float> out);

}  // namespace iha::checkpoint
