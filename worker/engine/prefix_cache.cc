#include "worker/engine/prefix_cache.h"

#include <algorithm>

#include "common/errors.h"
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

const PrefixCache::Node* PrefixCache::Child(PrefixNode parent, std::span<const int32_t> tokens, PrefixNode* id) const {
  const auto found = index_.find({parent, HashTokens(0, tokens)});
  if (found == index_.end()) return nullptr;
  const Node& node = nodes_.at(found->second);
  if (!std::equal(node.tokens.begin(), node.tokens.end(), tokens.begin(), tokens.end())) return nullptr;
  *id = found->second;
  return &node;
}

PrefixCache::Match PrefixCache::Find(std::span<const int32_t> tokens, int64_t max_blocks) const {
  Match match;
  for (int64_t i = 0; i < max_blocks; i++) {
    const Node* node = Child(match.node, tokens.subspan(static_cast<size_t>(i) * kBlock, kBlock), &match.node);
    if (node == nullptr) break;
    match.blocks.push_back(node->block);
  }
  return match;
}

void PrefixCache::Touch(PrefixNode id) {
  // From the leaf up, so that a parent is always newer than its children and leaves are met first when evicting.
  while (id != kPrefixRoot) {
    Node& node = nodes_.at(id);
    by_use_.erase({node.last_use, id});
    node.last_use = ++tick_;
    by_use_.insert({node.last_use, id});
    id = node.parent;
  }
}

std::optional<PrefixNode> PrefixCache::Insert(PrefixNode parent, std::span<const int32_t> tokens, int32_t block) {
  const uint64_t hash = HashTokens(0, tokens);
  const PrefixNode id{next_node_};
  if (!index_.emplace(std::pair(parent, hash), id).second) return std::nullopt;
  next_node_++;
  pool_->MarkCached(block);
  if (parent != kPrefixRoot) nodes_.at(parent).children++;
  nodes_[id] = Node{parent, hash, {tokens.begin(), tokens.end()}, block, 0, 0};
  Touch(id);
  return id;
}

bool PrefixCache::EvictOne() {
  if (pool_->idle() == 0) return false;
  for (auto oldest = by_use_.begin(); oldest != by_use_.end(); ++oldest) {
    const PrefixNode id = oldest->second;  // a copy: the entry goes before the node
    const Node& node = nodes_.at(id);
    if (node.children > 0 || pool_->refs(node.block) > 0) continue;
    pool_->ClearCached(node.block);
    if (node.parent != kPrefixRoot) nodes_.at(node.parent).children--;
    index_.erase({node.parent, node.hash});
    by_use_.erase(oldest);
    nodes_.erase(id);
    evictions_++;
    return true;
  }
  return false;
}

absl::Status PrefixCache::CheckInvariants() const {
  std::set<int32_t> blocks;
  std::map<PrefixNode, int32_t> children;
  for (const auto& [id, node] : nodes_) {
    if (!blocks.insert(node.block).second) return Internal("ENG-5: block {} is cached twice", node.block);
    if (!pool_->cached(node.block)) return Internal("ENG-5: block {} is not marked cached", node.block);
    if (node.tokens.size() != kBlock) return Internal("ENG-5: a cached block has {} tokens", node.tokens.size());
    if (node.parent == kPrefixRoot) continue;
    const auto parent = nodes_.find(node.parent);
    if (parent == nodes_.end()) return Internal("ENG-5: block {} has lost its parent", node.block);
    children[node.parent]++;
    if (pool_->refs(node.block) > 0 && pool_->refs(parent->second.block) == 0) {
      return Internal("ENG-5: block {} is used but its parent {} is not", node.block, parent->second.block);
    }
  }
  for (const auto& [id, node] : nodes_) {
    if (children[id] != node.children) return Internal("ENG-5: block {} miscounts its children", node.block);
  }
  if (by_use_.size() != nodes_.size() || index_.size() != nodes_.size()) {
    return Internal("ENG-5: {} nodes, {} by use, {} in the index", nodes_.size(), by_use_.size(), index_.size());
  }
  return absl::OkStatus();
}

}  // namespace iha::engine
