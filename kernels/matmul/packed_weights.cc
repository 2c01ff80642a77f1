#include <cassert>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/matmul/matmul.h"

namespace iha::kernels {
namespace {

size_t PanelBytes(WeightForm form, size_t k) {
  switch (form) {
    case WeightForm::kF32:
      return k * kPanelRows * sizeof(float);
    case WeightForm::kF16:
      return k * kPanelRows * sizeof(uint16_t);
    case WeightForm::kBF16:
      return (k + 1) / 2 * 2 * kPanelRows * sizeof(uint16_t);
    case WeightForm::kAffine:
      return (k + kAffineBlock - 1) / kAffineBlock * sizeof(AffinePanelBlock);
  }
  return 0;
}

}  // namespace

PackedWeights::PackedWeights(WeightForm form, size_t n, size_t k, WeightArena* arena)
    : form_(form), n_(n), k_(k), panel_bytes_(PanelBytes(form, k)) {
  data_ = arena != nullptr ? arena->Allocate(bytes())
                           : std::shared_ptr<uint8_t>(MakeAligned<uint8_t>(bytes()).release(), AlignedFree());
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
  assert(n0 + rows <= n_ && form_ != WeightForm::kAffine);
  switch (form_) {
    case WeightForm::kAffine:
      return;
    case WeightForm::kF32:
      return PackInto<float, 1>(data_.get(), panel_bytes_, n0, source, rows, stride, k_);
    case WeightForm::kF16:
      return PackInto<uint16_t, 1>(data_.get(), panel_bytes_, n0, source, rows, stride, k_);
    case WeightForm::kBF16:
      return PackInto<uint16_t, 2>(data_.get(), panel_bytes_, n0, source, rows, stride, k_);
  }
}

bool PackedWeights::PackAffineRows(size_t n0, const void* source, size_t rows, size_t stride) {
  assert(n0 + rows <= n_ && form_ == WeightForm::kAffine);
  const size_t blocks = (k_ + kAffineBlock - 1) / kAffineBlock;
  std::vector<float> row(k_);
  std::vector<AffineBlock> found(blocks);
  AffineHints hints;
  for (size_t r = 0; r < rows; ++r) {
    std::memcpy(row.data(), static_cast<const char*>(source) + r * stride * sizeof(float), k_ * sizeof(float));
    if (!FindAffineBlocks(row.data(), k_, hints, found.data())) return false;
    auto* to = reinterpret_cast<AffinePanelBlock*>(data_.get() + (n0 + r) / kPanelRows * panel_bytes_);
    const size_t lane = (n0 + r) % kPanelRows;
    for (size_t b = 0; b < blocks; ++b) {
      to[b].scale[lane] = found[b].scale;
      to[b].offset[lane] = found[b].offset;
      for (size_t i = 0; i < kAffineBlock; ++i) to[b].q[i][lane] = found[b].q[i];
    }
  }
  return true;
}

float PackedWeights::At(size_t n, size_t k) const {
  const uint8_t* base = panel(n / kPanelRows);
  const size_t lane = n % kPanelRows;
  switch (form_) {
    case WeightForm::kAffine: {
      const auto& block = reinterpret_cast<const AffinePanelBlock*>(base)[k / kAffineBlock];
      return std::fma(block.scale[lane], static_cast<float>(block.q[k % kAffineBlock][lane]), block.offset[lane]);
    }
    case WeightForm::kF32:
      return reinterpret_cast<const float*>(base)[k * kPanelRows + lane];
    case WeightForm::kF16:
      return WidenF16(reinterpret_cast<const uint16_t*>(base)[k * kPanelRows + lane]);
    case WeightForm::kBF16:
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
