#include "model/transformer/narrowing.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>

namespace iha::model {

using checkpoint::DType;
using checkpoint::TensorView;
using kernels::StorageType;

namespace {

constexpr size_t kPiece = 1024;    // values widened at a time: 4 KiB of stack
constexpr size_t kJobPieces = 64;  // pieces that a thread takes at a time
using Piece = std::array<float, kPiece>;

std::span<const float> WidenPiece(const TensorView& tensor, size_t begin, size_t count, Piece& piece) {
  const size_t size = static_cast<size_t>(checkpoint::SizeOf(tensor.dtype));
  const TensorView part{tensor.dtype, {}, tensor.bytes.subspan(begin * size, count * size)};
  // The error is for other dtypes.
  (void)checkpoint::WidenToF32(part, std::span(piece).first(count));
  return std::span(piece).first(count);
}

bool AllFitBF16(std::span<const float> values) {
  uint32_t any = 0;
  for (const float value : values) any |= std::bit_cast<uint32_t>(value);
  return (any & 0xffff) == 0;
}

constexpr uint32_t kInexact = 1u << 16;

// The fp16 of the float with these bits; kInexact is set in what is returned if there is none.
inline uint32_t F16OrInexact(uint32_t bits) {
  constexpr uint32_t kSmallestNormal = 0x38800000, kLargest = 0x477fe000, kInfinity = 0x7f800000;
  const uint32_t magnitude = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
  if (magnitude > kLargest) return sign | 0x7c00 | (magnitude == kInfinity ? 0 : kInexact);
  if (magnitude >= kSmallestNormal) {
    const uint32_t half = (magnitude >> 13) - ((127 - 15) << 10);
    return sign | half | ((magnitude & 0x1fff) == 0 ? 0 : kInexact);
  }
  const float units = std::bit_cast<float>(magnitude) * 0x1p24F;  // subnormals of fp16 are multiples of 2^-24
  const auto whole = static_cast<int32_t>(units);
  return sign | static_cast<uint32_t>(whole) | (static_cast<float>(whole) == units ? 0 : kInexact);
}

bool AllFitF16(std::span<const float> values) {
  uint32_t any = 0;
  for (const float value : values) any |= F16OrInexact(std::bit_cast<uint32_t>(value));
  return (any & kInexact) == 0;
}

bool Fits(const TensorView& tensor, StorageType type, kernels::ParallelFor& parallel) {
  if (StorageOf(tensor.dtype) == type) return true;
  const size_t elements = static_cast<size_t>(tensor.elements());
  const size_t pieces = (elements + kPiece - 1) / kPiece;
  std::atomic<bool> fits = true;
  parallel.Run((pieces + kJobPieces - 1) / kJobPieces, [&](size_t job, int) {
    Piece piece;
    for (size_t i = job * kJobPieces; i < std::min(pieces, (job + 1) * kJobPieces); ++i) {
      if (!fits.load(std::memory_order_relaxed)) return;
      const size_t begin = i * kPiece;
      const auto values = WidenPiece(tensor, begin, std::min(kPiece, elements - begin), piece);
      if (!(type == StorageType::kBF16 ? AllFitBF16(values) : AllFitF16(values))) {
        fits.store(false, std::memory_order_relaxed);
      }
    }
  });
  return fits;
}

}  // namespace

StorageType StorageOf(DType dtype) {
  if (dtype == DType::kBF16) return StorageType::kBF16;
  if (dtype == DType::kF16) return StorageType::kF16;
  return StorageType::kF32;
}

std::optional<uint16_t> ExactF16(float value) {
  const uint32_t half = F16OrInexact(std::bit_cast<uint32_t>(value));
  if ((half & kInexact) != 0) return std::nullopt;
  return static_cast<uint16_t>(half);
}

StorageType ExactStorage(std::span<const TensorView> tensors, kernels::ParallelFor& parallel) {
  const StorageType first = StorageOf(tensors.front().dtype);
  const auto all = [&](auto holds) { return std::all_of(tensors.begin(), tensors.end(), holds); };
  if (first != StorageType::kF32 && all([&](const TensorView& t) { return StorageOf(t.dtype) == first; })) return first;
  for (const StorageType type : {StorageType::kBF16, StorageType::kF16}) {
    if (all([&](const TensorView& t) { return Fits(t, type, parallel); })) return type;
  }
  return StorageType::kF32;
}

void StoreExactly(const TensorView& tensor, size_t begin, size_t count, StorageType type, std::byte* out) {
  Piece piece;
  const size_t size = kernels::StorageBytes(type);
  for (size_t done = 0; done < count; done += kPiece) {
    const auto values = WidenPiece(tensor, begin + done, std::min(kPiece, count - done), piece);
    if (type == StorageType::kF32) {
      std::memcpy(out, values.data(), values.size_bytes());
    } else {
      std::array<uint16_t, kPiece> narrow;
      std::transform(values.begin(), values.end(), narrow.begin(), [&](float value) {
        return type == StorageType::kBF16 ? static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16)
                                          : static_cast<uint16_t>(F16OrInexact(std::bit_cast<uint32_t>(value)));
      });
      std::memcpy(out, narrow.data(), values.size() * size);
    }
    out += values.size() * size;
  }
}

}  // namespace iha::model
