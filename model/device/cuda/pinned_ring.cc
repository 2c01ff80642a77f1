#include "model/device/cuda/pinned_ring.h"

#include <algorithm>

#include "common/status_macros.h"
#include "model/device/cuda/cuda_device.h"

namespace iha::model {
namespace {

constexpr size_t kAlignment = 256;

}  // namespace

PinnedRing::~PinnedRing() {
  for (const Piece& piece : pieces_) {
    if (piece.done != nullptr) cudaEventDestroy(piece.done);
    if (piece.memory != nullptr) cudaFreeHost(piece.memory);
  }
}

absl::Status PinnedRing::Open(cudaStream_t stream) {
  stream_ = stream;
  for (Piece& piece : pieces_) {
    void* memory = nullptr;
    IHA_RETURN_IF_ERROR(CudaStatus(cudaMallocHost(&memory, kPieceBytes), "page-locked memory"));
    piece.memory = static_cast<std::byte*>(memory);
    IHA_RETURN_IF_ERROR(CudaStatus(cudaEventCreateWithFlags(&piece.done, cudaEventDisableTiming), "event"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::span<std::byte>> PinnedRing::Take(size_t bytes) {
  if (used_ == kPieceBytes) {
    IHA_RETURN_IF_ERROR(CudaStatus(cudaEventRecord(pieces_[current_].done, stream_), "upload"));
    current_ = (current_ + 1) % kPieces;
    used_ = 0;
    // An event that was never recorded is done.
    IHA_RETURN_IF_ERROR(CudaStatus(cudaEventSynchronize(pieces_[current_].done), "upload"));
  }
  const size_t n = std::min(bytes, kPieceBytes - used_);
  const std::span<std::byte> part(pieces_[current_].memory + used_, n);
  used_ = std::min(kPieceBytes, (used_ + n + kAlignment - 1) / kAlignment * kAlignment);
  return part;
}

void PinnedRing::Reset() { current_ = used_ = 0; }

}  // namespace iha::model
