#include "worker/engine/kv_block_pool.h"

#include <algorithm>
#include <cstdlib>

#include "common/errors.h"

namespace iha::engine {
namespace {

// A wrong reference count would let two sequences write one block, which silently changes results: stop instead.
void Require(bool ok) {
  if (!ok) std::abort();
}

}  // namespace

KvBlockPool::KvBlockPool(int32_t blocks) : blocks_(static_cast<size_t>(std::max(blocks, 0))) {
  free_.reserve(blocks_.size());
  for (int32_t block = total() - 1; block >= 0; block--) free_.push_back(block);
}

std::optional<int32_t> KvBlockPool::TryAllocate() {
  if (free_.empty()) return std::nullopt;
  const int32_t block = free_.back();
  free_.pop_back();
  blocks_[static_cast<size_t>(block)].refs = 1;
  peak_used_ = std::max(peak_used_, used());
  return block;
}

void KvBlockPool::AddRef(int32_t block) {
  Block& state = blocks_.at(static_cast<size_t>(block));
  Require(state.refs > 0 || state.cached);
  if (state.refs == 0) idle_--;
  state.refs++;
  peak_used_ = std::max(peak_used_, used());
}

void KvBlockPool::Release(int32_t block) {
  Block& state = blocks_.at(static_cast<size_t>(block));
  Require(state.refs > 0);
  if (--state.refs > 0) return;
  if (state.cached) {
    idle_++;
  } else {
    free_.push_back(block);
  }
}

void KvBlockPool::MarkCached(int32_t block) {
  Block& state = blocks_.at(static_cast<size_t>(block));
  Require(state.refs > 0 && !state.cached);
  state.cached = true;
}

void KvBlockPool::ClearCached(int32_t block) {
  Block& state = blocks_.at(static_cast<size_t>(block));
  Require(state.cached);
  state.cached = false;
  if (state.refs > 0) return;
  idle_--;
  free_.push_back(block);
}

absl::Status KvBlockPool::CheckInvariants() const {
  std::vector<bool> listed(blocks_.size(), false);
  for (const int32_t block : free_) {
    if (listed.at(static_cast<size_t>(block))) return Internal("ENG-4: block {} is on the free list twice", block);
    listed[static_cast<size_t>(block)] = true;
  }
  int32_t idle = 0;
  for (size_t block = 0; block < blocks_.size(); block++) {
    const bool is_free = blocks_[block].refs == 0 && !blocks_[block].cached;
    if (blocks_[block].refs < 0) return Internal("ENG-4: block {} has {} references", block, blocks_[block].refs);
    if (is_free != listed[block]) return Internal("ENG-4: block {} disagrees with the free list", block);
    if (blocks_[block].cached && blocks_[block].refs == 0) idle++;
  }
  if (idle != idle_) return Internal("ENG-4: {} idle blocks, counted {}", idle, idle_);
  return absl::OkStatus();
}

}  // namespace iha::engine
