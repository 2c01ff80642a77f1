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

namespace {

// One row of W: a column of its panel.
template <class T, size_t kPair>
void PackRow(const T* from, size_t k, size_t lane, T* panel) {
  T* to = panel + lane * kPair;
  for (size_t i = 0; i < k; ++i) {
    std::memcpy(to + i / kPair * kPanelRows * kPair + i % kPair, from + i, sizeof(T));
  }
}

// A whole panel at once: 16 streams are read and whole cache lines written, where row by row each line is written 16
// times.
template <class T, size_t kPair>
void PackPanel(const T* from, size_t stride, size_t k, T* panel) {
  for (size_t i = 0; i + kPair <= k; i += kPair) {
    T line[kPanelRows * kPair];
    for (size_t lane = 0; lane < kPanelRows; ++lane) {
      std::memcpy(line + lane * kPair, from + lane * stride + i, kPair * sizeof(T));
    }
    std::memcpy(panel + i * kPanelRows, line, sizeof(line));
  }
  if (k % kPair == 0) return;
  for (size_t lane = 0; lane < kPanelRows; ++lane) {  // the last k of an odd number: the pair's high half stays zero
    std::memcpy(panel + (k - 1) * kPanelRows + lane * kPair, from + lane * stride + k - 1, sizeof(T));
  }
}

template <class T, size_t kPair>
void PackInto(uint8_t* data, size_t panel_bytes, size_t n0, const void* source, size_t rows, size_t stride, size_t k) {
  const T* from = static_cast<const T*>(source);
  for (size_t row = 0; row < rows;) {
    T* panel = reinterpret_cast<T*>(data + (n0 + row) / kPanelRows * panel_bytes);
    const size_t lane = (n0 + row) % kPanelRows;
    if (lane == 0 && rows - row >= kPanelRows) {
      PackPanel<T, kPair>(from + row * stride, stride, k, panel);
      row += kPanelRows;
    } else {
      PackRow<T, kPair>(from + row * stride, k, lane, panel);
      ++row;
    }
  }
}

}  // namespace

void PackedWeights::PackRows(size_t n0, const void* source, size_t rows, size_t stride) {
  assert(n0 + rows <= n_);
  switch (type_) {
    case StorageType::kF32:
      return PackInto<float, 1>(data_.get(), panel_bytes_, n0, source, rows, stride, k_);
    case StorageType::kF16:
      return PackInto<uint16_t, 1>(data_.get(), panel_bytes_, n0, source, rows, stride, k_);
    case StorageType::kBF16:
      return PackInto<uint16_t, 2>(data_.get(), panel_bytes_, n0, source, rows, stride, k_);
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
