// weight_arena.h: many matrices side by side in huge pages.
//
// A matrix of its own gets huge pages only if it is large (aligned.h); the layers of a small model are a few MiB at
// most, and reading them page by page of 4 KiB once a step costs a core a third of its bandwidth. Allocate returns
// 64-byte aligned, uninitialised bytes that live until the last owner drops them; a chunk lives as long as something in
// it. What was allocated last is given back to the chunk when it goes, so an attempt that fails leaves no hole. One
// thread at a time; throws std::bad_alloc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/support/aligned.h"

namespace iha::kernels {

class WeightArena {
 public:
  std::shared_ptr<uint8_t> Allocate(size_t bytes) {
    bytes = (bytes + kLine - 1) / kLine * kLine;
    if (bytes >= kOwnPages) return {MakeAligned<uint8_t>(bytes).release(), AlignedFree()};
    if (chunk_ == nullptr || chunk_->bytes - chunk_->used < bytes) {
      const size_t size = chunk_ == nullptr ? kOwnPages : std::min(2 * chunk_->bytes, kMostBytes);
      chunk_ = std::make_shared<Chunk>(Chunk{MakeAligned<uint8_t>(size), size, 0});
    }
    const size_t begin = chunk_->used, end = begin + bytes;
    chunk_->used = end;
    return {chunk_->memory.get() + begin, [chunk = chunk_, begin, end](uint8_t*) {
              if (chunk->used == end) chunk->used = begin;
            }};
  }

 private:
  struct Chunk {
    AlignedArray<uint8_t> memory;
    size_t bytes, used;
  };
  static constexpr size_t kLine = 64;
  static constexpr size_t kOwnPages = size_t{4} << 20;  // from here on MakeAligned asks for huge pages itself
  static constexpr size_t kMostBytes = size_t{64} << 20;

  std::shared_ptr<Chunk> chunk_;
};

}  // namespace iha::kernels
