#include "kernels/embedding/embedding.h"

#include <cstring>

namespace iha::kernels {

void Widen(StorageType type, const void* source, size_t n, float* out) {
  switch (type) {
    case StorageType::kF32:
      std::memcpy(out, source, n * sizeof(float));
      return;
    case StorageType::kBF16:
    case StorageType::kF16:
      for (size_t i = 0; i < n; ++i) {
        uint16_t bits;  // the source is a mapped file: any alignment
        std::memcpy(&bits, static_cast<const char*>(source) + i * sizeof(bits), sizeof(bits));
        out[i] = type == StorageType::kBF16 ? WidenBF16(bits) : WidenF16(bits);
      }
      return;
  }
}

void Embed(StorageType type, const void* table, size_t n, std::span<const int32_t> ids, float scale, float* out,
           size_t ldo) {
  for (size_t t = 0; t < ids.size(); ++t) {
    float* row = out + t * ldo;
    Widen(type, static_cast<const char*>(table) + static_cast<size_t>(ids[t]) * n * StorageBytes(type), n, row);
    if (scale != 1.0f) {
      for (size_t i = 0; i < n; ++i) row[i] *= scale;
    }
  }
}

}  // namespace iha::kernels
