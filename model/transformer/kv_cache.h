// kv_cache.h: the memory behind block ids: one slab, a block holds 64 tokens of one layer group (kv_placement.h).
//
// Blocks are 64-byte aligned. A block's bytes are only defined where tokens were appended; until then a large slab
// takes address space, not memory. Owned by the backend; same thread as it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "absl/status/status.h"
#include "common/errors.h"
#include "common/status_macros.h"
#include "kernels/support/aligned.h"
#include "model/step_check.h"

namespace iha::model {

class KvCache {
 public:
  // block_bytes: a multiple of 64.
  explicit KvCache(size_t block_bytes) : block_bytes_(block_bytes) {}

  size_t block_bytes() const { return block_bytes_; }
  int32_t blocks() const { return blocks_; }

  // Errors of CheckReservation. ResourceExhausted when the system refuses the memory.
  [[nodiscard]] absl::Status Reserve(int32_t blocks) {
    IHA_RETURN_IF_ERROR(CheckReservation(blocks_, blocks));
    const size_t bytes = static_cast<size_t>(blocks) * block_bytes_;
    try {
      memory_ = kernels::MakeAligned<uint8_t>(bytes);
    } catch (const std::bad_alloc&) {
      return ResourceExhausted("KV cache of {} MiB: out of memory; lower the budget", bytes >> 20);
    }
    blocks_ = blocks;
    return absl::OkStatus();
  }

  uint8_t* Block(int32_t id) { return memory_.get() + static_cast<size_t>(id) * block_bytes_; }
  void Copy(int32_t from, int32_t to) { std::memcpy(Block(to), Block(from), block_bytes_); }

 private:
  size_t block_bytes_;
  int32_t blocks_ = 0;
  kernels::AlignedArray<uint8_t> memory_;
};

}  // namespace iha::model
