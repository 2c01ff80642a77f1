// prefix_cache.h: full KV blocks of prompts, found again by their token ids (so that a few-shot prefix is computed
// once).
//
// A tree: a node is one full block of tokens below the node of the block before it, so a path from the root spells a
// prompt prefix. Found by hash of (parent, tokens), then compared token by token: a hash collision is a miss, never a
// wrong hit. A node keeps a block of each layer group. Those of groups with a window can go before the node does: a
// prefix is found only as long as what its last window shows is there. Least recently used first: leaves, and blocks of
// windows that no hit has needed since. One thread (the scheduler's); the pool must outlive it.
//
// Invariants (checked by CheckInvariants): ENG-5 every block of a node is marked cached in the pool, once; a node whose
// block of a group without a window is used has a parent whose block is used; hence every idle block can be evicted.
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
#include "worker/engine/kv_groups.h"

namespace iha::engine {

enum class PrefixNode : int64_t {};
inline constexpr PrefixNode kPrefixRoot{0};

// Hashes of the first `blocks` blocks of `tokens`, each over all tokens up to its end: equal entries (almost surely)
// mean equal prefixes. For scheduling decisions that cannot change a result.
std::vector<uint64_t> PrefixHashes(std::span<const int32_t> tokens, int64_t blocks);
// The same of all of them.
uint64_t PromptHash(std::span<const int32_t> tokens);

class PrefixCache {
 public:
  // windows: model::ModelInfo::kv_windows.
  explicit PrefixCache(KvBlockPool* pool, std::vector<int64_t> windows = {0});

  struct Match {
    PrefixNode node = kPrefixRoot;  // of the last matched block
    int64_t blocks = 0;
    BlockTables tables;  // kNoKvBlock where no row that follows looks
  };
  // The longest cached prefix of `tokens`, at most `max_blocks` blocks, that has all that rows after it see. Changes
  // nothing; takes no references.
  Match Find(std::span<const int32_t> tokens, int64_t max_blocks) const;
  // Makes the path to `node` the most recently used, and the blocks of windows that rows after it see.
  void Touch(PrefixNode node);
  // Adds a node with `blocks`, one of each group (used by the caller, who also uses all blocks of the path to `parent`
  // in groups without a window; kNoKvBlock in others where it has none). nullopt: these tokens are cached already,
  // their hash is taken, or the parent is gone; nothing changed.
  std::optional<PrefixNode> Insert(PrefixNode parent, std::span<const int32_t> tokens, std::vector<int32_t> blocks);
  // The node of these tokens, which takes from `blocks` (used by the caller) what it lacks in groups with a window.
  // nullopt: no such node, or no such groups.
  std::optional<PrefixNode> Refill(PrefixNode parent, std::span<const int32_t> tokens, std::span<const int32_t> blocks);
  // Drops the least recently used idle leaf or blocks of windows, and frees at least one block. False when none is
  // idle.
  bool EvictOne();

  int64_t size() const { return static_cast<int64_t>(nodes_.size()); }
  int64_t evictions() const { return evictions_; }
  absl::Status CheckInvariants() const;

 private:
  struct Node {
    PrefixNode parent = kPrefixRoot;
    uint64_t hash = 0;
    std::vector<int32_t> tokens;
    std::vector<int32_t> blocks;  // of each group
    int32_t children = 0;
    uint64_t last_use = 0;
    uint64_t window_use = 0;  // of the blocks of groups with a window
  };
  const Node* Child(PrefixNode parent, std::span<const int32_t> tokens, PrefixNode* id) const;
  // The first block that rows after `blocks` blocks see.
  int64_t FirstBlock(size_t group, int64_t blocks) const {
    return model::FirstSeen(windows_[group], blocks * model::kKvBlockTokens) / model::kKvBlockTokens;
  }
  // Has the node such a block in the groups with, or without, a window?
  enum class Use { kAny, kUsed, kIdle };
  bool AnyBlock(const Node& node, bool windowed, Use use = Use::kAny) const;
  void DropWindowBlocks(PrefixNode id);
  void Remove(PrefixNode id);
  absl::Status CheckNode(const Node& node, std::set<int32_t>& blocks) const;

  KvBlockPool* const pool_;
  const std::vector<int64_t> windows_;
  int64_t longest_window_ = 0;
  std::map<PrefixNode, Node> nodes_;
  std::map<std::pair<PrefixNode, uint64_t>, PrefixNode> index_;  // (parent, hash of the block's tokens)
  std::set<std::pair<uint64_t, PrefixNode>> by_use_;             // (last_use, node), oldest first
  std::set<std::pair<uint64_t, PrefixNode>> by_window_use_;      // of nodes with blocks of windows
  int64_t next_node_ = 1;
  uint64_t tick_ = 0;
  int64_t evictions_ = 0;
};

}  // namespace iha::engine
