#include <cassert>
#include <cstring>

#include "kernels/matmul/matmul.h"

namespace iha::kernels {
namespace {

size_t PanelBytes(StorageType type, size_t k) {
  const size_t k_slots = type == StorageType::kBF16 ? (k + 1) / 2 * 2 : k;
  return k_slots * kPanelRows * StorageBytes(type);
}

}  // namespace

PackedWeights::PackedWeights(StorageType type, size_t n, size_t k)
    : type_(type), n_(n), k_(k), panel_bytes_(PanelBytes(type, k)) {
  data_ = MakeAligned<uint8_t>(bytes());
  std::memset(data_.get(), 0, bytes());
}

void PackedWeights::PackRows(size_t n0, const void* source, size_t rows, size_t stride) {
  assert(n0 + rows <= n_);
  for (size_t row = 0; row < rows; ++row) {
    const size_t lane = (n0 + row) % kPanelRows;
    uint8_t* panel = data_.get() + (n0 + row) / kPanelRows * panel_bytes_;
    switch (type_) {
      case StorageType::kF32: {
        const float* from = static_cast<const float*>(source) + row * stride;
        float* to = reinterpret_cast<float*>(panel) + lane;
        for (size_t k = 0; k < k_; ++k) std::memcpy(to + k * kPanelRows, from + k, sizeof(float));
        break;
      }
      case StorageType::kF16: {
        const uint16_t* from = static_cast<const uint16_t*>(source) + row * stride;
        uint16_t* to = reinterpret_cast<uint16_t*>(panel) + lane;
        for (size_t k = 0; k < k_; ++k) std::memcpy(to + k * kPanelRows, from + k, sizeof(uint16_t));
        break;
      }
      case StorageType::kBF16: {
        const uint16_t* from = static_cast<const uint16_t*>(source) + row * stride;
        uint16_t* to = reinterpret_cast<uint16_t*>(panel) + lane * 2;
        for (size_t k = 0; k < k_; ++k) {
          std::memcpy(to + k / 2 * kPanelRows * 2 + k % 2, from + k, sizeof(uint16_t));
        }
        break;
      }
    }
  }
}

float PackedWeights::At(size_t n, size_t k) const {
  const uint8_t* base = panel(n / kPanelRows);
  const size_t lane = n % kPanelRows;
  switch (type_) {
    case StorageType::kF32:
      return reinterpret_cast<const float*>(base)[k * kPanelRows + lane];
    case StorageType::kF16:
      return WidenF16(reinterpret_cast<const uint16_t*>(base)[k * kPanelRows + lane]);
    case StorageType::kBF16:
      return WidenBF16(reinterpret_cast<const uint16_t*>(base)[(k / 2 * kPanelRows + lane) * 2 + k % 2]);
  }
  return 0.0f;
}

PackedWeights Pack(StorageType type, const void* source, size_t n, size_t k) {
  PackedWeights packed(type, n, k);
  packed.PackRows(0, source, n, k);
  return packed;
}

}  // namespace iha::kernels
