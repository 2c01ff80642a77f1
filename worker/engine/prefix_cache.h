// prefix_cache.h: full KV blocks of prompts, found again by their token ids (so that a few-shot prefix is computed
// once).
//
// A tree: a node is one full block of tokens below the node of the block before it, so a path from the root spells a
// prompt prefix. Found by hash of (parent, tokens), then compared token by token: a hash collision is a miss, never a
// wrong hit. Least recently used leaves go first. One thread (the scheduler's); the pool must outlive it.
//
// Invariants (checked by CheckInvariants): ENG-5 every node's block is marked cached in the pool, once; a node whose
// block is used has a parent whose block is used; hence every idle node can be evicted, leaves first.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "worker/engine/kv_block_pool.h"

namespace iha::engine {

enum class PrefixNode : int64_t {};
inline constexpr PrefixNode kPrefixRoot{0};

// Hashes of the first `blocks` blocks of `tokens`, each over all tokens up to its end: equal entries (almost surely)
// mean equal prefixes. For scheduling decisions that cannot change a result.
std::vector<uint64_t> PrefixHashes(std::span<const int32_t> tokens, int64_t blocks);

class PrefixCache {
 public:
  explicit PrefixCache(KvBlockPool* pool) : pool_(pool) {}

  struct Match {
    PrefixNode node = kPrefixRoot;  // of the last matched block
    std::vector<int32_t> blocks;
  };
  // The longest cached prefix of `tokens`, at most `max_blocks` blocks. Changes nothing; takes no references.
  Match Find(std::span<const int32_t> tokens, int64_t max_blocks) const;
  // Makes the path to `node` the most recently used.
  void Touch(PrefixNode node);
  // Adds `block` (used by the caller, who also uses all blocks of the path to `parent`). nullopt: these tokens are
  // cached already, or their hash is taken; nothing changed.
  std::optional<PrefixNode> Insert(PrefixNode parent, std::span<const int32_t> tokens, int32_t block);
  // Drops the least recently used idle leaf and frees its block. False when no block is idle.
  bool EvictOne();

  int64_t size() const { return static_cast<int64_t>(nodes_.size()); }
  int64_t evictions() const { return evictions_; }
  absl::Status CheckInvariants() const;

 private:
  struct Node {
    PrefixNode parent = kPrefixRoot;
    uint64_t hash = 0;
    std::vector<int32_t> tokens;
    int32_t block = 0;
    int32_t children = 0;
    uint64_t last_use = 0;
  };
  const Node* Child(PrefixNode parent, std::span<const int32_t> tokens, PrefixNode* id) const;

  KvBlockPool* const pool_;
  std::map<PrefixNode, Node> nodes_;
  std::map<std::pair<PrefixNode, uint64_t>, PrefixNode> index_;  // (parent, hash of the block's tokens)
  std::set<std::pair<uint64_t, PrefixNode>> by_use_;             // (last_use, node), oldest first
  int64_t next_node_ = 1;
  uint64_t tick_ = 0;
  int64_t evictions_ = 0;
};

}  // namespace iha::engine
