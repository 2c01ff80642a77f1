#include "worker/engine/prefix_cache.h"

#include <algorithm>

#include "common/errors.h"
#include "common/status_macros.h"
#include "model/backend.h"

namespace iha::engine {
namespace {

constexpr size_t kBlock = model::kKvBlockTokens;

// splitmix64's finaliser: every input bit reaches every output bit.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t HashTokens(uint64_t start, std::span<const int32_t> tokens) {
  uint64_t hash = start;
  for (const int32_t id : tokens) hash = Mix(hash + 0x9e3779b97f4a7c15u + static_cast<uint32_t>(id));
  return hash;
}

}  // namespace

std::vector<uint64_t> PrefixHashes(std::span<const int32_t> tokens, int64_t blocks) {
  std::vector<uint64_t> hashes;
  hashes.reserve(static_cast<size_t>(blocks));
  uint64_t hash = 0;
  for (int64_t i = 0; i < blocks; i++) {
    hash = HashTokens(hash, tokens.subspan(static_cast<size_t>(i) * kBlock, kBlock));
    hashes.push_back(hash);
  }
  return hashes;
}

uint64_t PromptHash(std::span<const int32_t> tokens) { return HashTokens(tokens.size(), tokens); }

PrefixCache::PrefixCache(KvBlockPool* pool, std::vector<int64_t> windows) : pool_(pool), windows_(std::move(windows)) {
  longest_window_ = *std::ranges::max_element(windows_);
}

const PrefixCache::Node* PrefixCache::Child(PrefixNode parent, std::span<const int32_t> tokens, PrefixNode* id) const {
  const auto found = index_.find({parent, HashTokens(0, tokens)});
  if (found == index_.end()) return nullptr;
  const Node& node = nodes_.at(found->second);
  if (!std::equal(node.tokens.begin(), node.tokens.end(), tokens.begin(), tokens.end())) return nullptr;
  *id = found->second;
  return &node;
}

bool PrefixCache::AnyBlock(const Node& node, bool windowed, Use use) const {
  for (size_t group = 0; group < windows_.size(); group++) {
    const int32_t block = node.blocks[group];
    if ((windows_[group] != 0) != windowed || block == model::kNoKvBlock) continue;
    if (use == Use::kAny || (use == Use::kUsed) == (pool_->refs(block) > 0)) return true;
  }
  return false;
}

PrefixCache::Match PrefixCache::Find(std::span<const int32_t> tokens, int64_t max_blocks) const {
  Match match;
  match.tables.resize(windows_.size());
  std::vector<const Node*> path;
  std::vector<int64_t> present(windows_.size(), 0);  // of each group: blocks without a gap before the end of the path
  PrefixNode id = kPrefixRoot;
  for (int64_t i = 0; i < max_blocks; i++) {
    const Node* node = Child(id, tokens.subspan(static_cast<size_t>(i) * kBlock, kBlock), &id);
    if (node == nullptr) break;
    path.push_back(node);
    bool complete = true;
    for (size_t group = 0; group < windows_.size(); group++) {
      present[group] = node->blocks[group] == model::kNoKvBlock ? 0 : present[group] + 1;
      complete = complete && present[group] >= i + 1 - FirstBlock(group, i + 1);
    }
    if (!complete) continue;
    match.node = id;
    match.blocks = i + 1;
  }
  for (size_t group = 0; group < windows_.size(); group++) {
    std::vector<int32_t>& table = match.tables[group];
    table.assign(static_cast<size_t>(FirstBlock(group, match.blocks)), model::kNoKvBlock);
    for (size_t i = table.size(); i < static_cast<size_t>(match.blocks); i++) table.push_back(path[i]->blocks[group]);
  }
  return match;
}

void PrefixCache::Touch(PrefixNode id) {
  // From the leaf up, so that a parent is always newer than its children and leaves are met first when evicting.
  for (int64_t behind = 0; id != kPrefixRoot; behind += model::kKvBlockTokens) {
    Node& node = nodes_.at(id);
    by_use_.erase({node.last_use, id});
    node.last_use = ++tick_;
    by_use_.insert({node.last_use, id});
    if (behind < longest_window_ - 1 && by_window_use_.erase({node.window_use, id}) > 0) {
      node.window_use = node.last_use;
      by_window_use_.insert({node.window_use, id});
    }
    id = node.parent;
  }
}

std::optional<PrefixNode> PrefixCache::Insert(PrefixNode parent, std::span<const int32_t> tokens,
                                              std::vector<int32_t> blocks) {
  if (parent != kPrefixRoot && !nodes_.contains(parent)) return std::nullopt;
  Node node{parent, HashTokens(0, tokens), {tokens.begin(), tokens.end()}, std::move(blocks), 0, 0, 0};
  for (size_t group = 0; group < windows_.size(); group++) {
    int32_t& block = node.blocks[group];
    if (windows_[group] != 0 && block != model::kNoKvBlock && pool_->cached(block)) block = model::kNoKvBlock;
  }
  const bool windowed = AnyBlock(node, true);
  if (!windowed && !AnyBlock(node, false)) return std::nullopt;  // nothing that could ever be evicted
  const PrefixNode id{next_node_};
  if (!index_.emplace(std::pair(parent, node.hash), id).second) return std::nullopt;
  next_node_++;
  for (const int32_t block : node.blocks) {
    if (block != model::kNoKvBlock) pool_->MarkCached(block);
  }
  if (parent != kPrefixRoot) nodes_.at(parent).children++;
  if (windowed) by_window_use_.insert({node.window_use = ++tick_, id});
  nodes_[id] = std::move(node);
  Touch(id);
  return id;
}

std::optional<PrefixNode> PrefixCache::Refill(PrefixNode parent, std::span<const int32_t> tokens,
                                              std::span<const int32_t> blocks) {
  PrefixNode id = kPrefixRoot;
  if (longest_window_ == 0 || Child(parent, tokens, &id) == nullptr) return std::nullopt;
  Node& node = nodes_.at(id);
  for (size_t group = 0; group < windows_.size(); group++) {
    const int32_t block = blocks[group];
    if (windows_[group] == 0 || node.blocks[group] != model::kNoKvBlock) continue;
    if (block == model::kNoKvBlock || pool_->cached(block)) continue;
    pool_->MarkCached(block);
    node.blocks[group] = block;
    by_window_use_.erase({node.window_use, id});
    by_window_use_.insert({node.window_use = ++tick_, id});
  }
  Touch(id);
  return id;
}

bool PrefixCache::EvictOne() {
  if (pool_->idle() == 0) return false;
  const auto leaf = std::ranges::find_if(by_use_, [this](const auto& entry) {
    const Node& node = nodes_.at(entry.second);
    return node.children == 0 && !AnyBlock(node, false, Use::kUsed) &&
           (AnyBlock(node, false, Use::kIdle) || AnyBlock(node, true, Use::kIdle));
  });
  const auto window = std::ranges::find_if(
      by_window_use_, [this](const auto& entry) { return AnyBlock(nodes_.at(entry.second), true, Use::kIdle); });
  if (leaf == by_use_.end() && window == by_window_use_.end()) return false;
  evictions_++;
  if (window == by_window_use_.end() || (leaf != by_use_.end() && leaf->first <= window->first)) {
    Remove(leaf->second);
  } else {
    DropWindowBlocks(window->second);
  }
  return true;
}

// The idle ones.
void PrefixCache::DropWindowBlocks(PrefixNode id) {
  Node& node = nodes_.at(id);
  for (size_t group = 0; group < windows_.size(); group++) {
    int32_t& block = node.blocks[group];
    if (windows_[group] == 0 || block == model::kNoKvBlock || pool_->refs(block) > 0) continue;
    pool_->ClearCached(block);
    block = model::kNoKvBlock;
  }
  if (AnyBlock(node, true)) return;
  by_window_use_.erase({node.window_use, id});
  if (node.children == 0 && !AnyBlock(node, false)) Remove(id);
}

// A leaf, and above it what is left without blocks and children. Blocks that are used stay with their sequences.
void PrefixCache::Remove(PrefixNode id) {
  while (id != kPrefixRoot) {
    const Node node = std::move(nodes_.at(id));
    for (const int32_t block : node.blocks) {
      if (block != model::kNoKvBlock) pool_->ClearCached(block);
    }
    index_.erase({node.parent, node.hash});
    by_use_.erase({node.last_use, id});
    by_window_use_.erase({node.window_use, id});
    nodes_.erase(id);
    id = node.parent;
    if (id == kPrefixRoot) return;
    Node& parent = nodes_.at(id);
    parent.children--;
    if (parent.children > 0 || AnyBlock(parent, false) || AnyBlock(parent, true)) return;
  }
}

absl::Status PrefixCache::CheckNode(const Node& node, std::set<int32_t>& blocks) const {
  if (node.tokens.size() != kBlock) return Internal("ENG-5: a cached block has {} tokens", node.tokens.size());
  for (const int32_t block : node.blocks) {
    if (block == model::kNoKvBlock) continue;
    if (!blocks.insert(block).second) return Internal("ENG-5: block {} is cached twice", block);
    if (!pool_->cached(block)) return Internal("ENG-5: block {} is not marked cached", block);
  }
  const auto parent = nodes_.find(node.parent);
  if (node.parent != kPrefixRoot && parent == nodes_.end()) return Internal("ENG-5: a node has lost its parent");
  for (size_t group = 0; group < windows_.size(); group++) {
    const int32_t block = node.blocks[group];
    if (windows_[group] != 0) continue;
    if (block == model::kNoKvBlock) return Internal("ENG-5: a node has no block of group {}", group);
    if (node.parent == kPrefixRoot || pool_->refs(block) == 0) continue;
    if (const int32_t above = parent->second.blocks[group]; pool_->refs(above) == 0) {
      return Internal("ENG-5: block {} is used but its parent {} is not", block, above);
    }
  }
  return absl::OkStatus();
}

absl::Status PrefixCache::CheckInvariants() const {
  std::set<int32_t> blocks;
  std::map<PrefixNode, int32_t> children;
  size_t windowed = 0;
  for (const auto& [id, node] : nodes_) {
    IHA_RETURN_IF_ERROR(CheckNode(node, blocks));
    children[node.parent]++;
    if (!AnyBlock(node, true)) continue;
    windowed++;
    if (!by_window_use_.contains({node.window_use, id})) return Internal("ENG-5: blocks of a window are not listed");
  }
  for (const auto& [id, node] : nodes_) {
    if (children[id] != node.children) return Internal("ENG-5: a node miscounts its {} children", children[id]);
    if (node.children == 0 && !AnyBlock(node, false) && !AnyBlock(node, true)) return Internal("ENG-5: an empty leaf");
  }
  if (by_use_.size() != nodes_.size() || index_.size() != nodes_.size() || by_window_use_.size() != windowed) {
    return Internal("ENG-5: {} nodes, {} by use, {} in the index; {} with windows, {} by use", nodes_.size(),
                    by_use_.size(), index_.size(), windowed, by_window_use_.size());
  }
  return absl::OkStatus();
}

}  // namespace iha::engine
