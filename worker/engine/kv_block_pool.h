// kv_block_pool.h: who uses which block of the paged KV cache. Bookkeeping only: the memory is the backend's.
//
// A block is free, used (refs > 0: that many sequences), cached (the prefix cache keeps its contents), or both used and
// cached. Cached without refs = idle: it can be evicted. One thread (the scheduler's). Misuse is a bug: it aborts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"

namespace iha::engine {

class KvBlockPool {
 public:
  explicit KvBlockPool(int32_t blocks);

  // A free block, with one reference. nullopt when none is free (the caller evicts an idle one or preempts).
  std::optional<int32_t> TryAllocate();
  void AddRef(int32_t block);
  // Frees the block with its last reference unless it is cached.
  void Release(int32_t block);
  void MarkCached(int32_t block);
  // Frees the block unless it is used.
  void ClearCached(int32_t block);

  int32_t refs(int32_t block) const { return blocks_.at(static_cast<size_t>(block)).refs; }
  bool cached(int32_t block) const { return blocks_.at(static_cast<size_t>(block)).cached; }
  int32_t total() const { return static_cast<int32_t>(blocks_.size()); }
  int32_t free() const { return static_cast<int32_t>(free_.size()); }
  int32_t idle() const { return idle_; }                      // cached, unused: can become free
  int32_t used() const { return total() - free() - idle(); }  // by sequences
  int32_t peak_used() const { return peak_used_; }

  // ENG-4: free list, counts and states agree. Internal names the block.
  absl::Status CheckInvariants() const;

 private:
  struct Block {
    int32_t refs = 0;
    bool cached = false;
  };
  std::vector<Block> blocks_;
  std::vector<int32_t> free_;  // a stack, lowest id on top at the start
  int32_t idle_ = 0;
  int32_t peak_used_ = 0;
};

}  // namespace iha::engine
