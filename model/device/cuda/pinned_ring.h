// pinned_ring.h: page-locked pieces of host memory that copies to the device go through, used in turn.
//
// A piece is handed out again when the copies that read it are done: Take waits for that, which happens only when a
// caller is four pieces ahead of the device. Thread: the runtime's; its device is current. Errors: CudaStatus's.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace iha::model {

class PinnedRing {
 public:
  static constexpr size_t kPieceBytes = size_t{4} << 20;
  static constexpr size_t kPieces = 4;

  PinnedRing() = default;
  ~PinnedRing();  // after the stream is idle
  PinnedRing(const PinnedRing&) = delete;
  PinnedRing& operator=(const PinnedRing&) = delete;

  absl::Status Open(cudaStream_t stream);
  // At least one byte, at most `bytes`, free until the copies enqueued until the piece ends are done.
  absl::StatusOr<std::span<std::byte>> Take(size_t bytes);
  // Piece i, whole; for copies from the device. The stream must be idle; afterwards all pieces are free.
  std::span<std::byte> Whole(size_t i) { return {pieces_[i].memory, kPieceBytes}; }
  cudaEvent_t done(size_t i) const { return pieces_[i].done; }
  void Reset();

 private:
  struct Piece {
    std::byte* memory = nullptr;
    cudaEvent_t done = nullptr;
  };
  cudaStream_t stream_ = nullptr;
  std::array<Piece, kPieces> pieces_;
  size_t current_ = 0;
  size_t used_ = 0;  // of the current one
};

}  // namespace iha::model
