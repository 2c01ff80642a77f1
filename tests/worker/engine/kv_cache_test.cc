// KvBlockPool and PrefixCache: bookkeeping of the paged KV cache.

#include <gtest/gtest.h>

#include <vector>

#include "common/rng.h"
#include "model/backend.h"
#include "worker/engine/kv_block_pool.h"
#include "worker/engine/prefix_cache.h"

namespace iha::engine {
namespace {

std::vector<int32_t> Tokens(int32_t first, int64_t blocks) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < blocks * model::kKvBlockTokens; i++) tokens.push_back(first + static_cast<int32_t>(i));
  return tokens;
}

std::span<const int32_t> BlockOf(const std::vector<int32_t>& tokens, int64_t block) {
  return std::span(tokens).subspan(static_cast<size_t>(block * model::kKvBlockTokens), model::kKvBlockTokens);
}

TEST(KvBlockPool, BlocksGoRoundByReferences) {
  KvBlockPool pool(2);
  const int32_t a = *pool.TryAllocate(), b = *pool.TryAllocate();
  EXPECT_NE(a, b);
  EXPECT_FALSE(pool.TryAllocate().has_value());
  pool.AddRef(a);
  pool.Release(a);
  EXPECT_FALSE(pool.TryAllocate().has_value()) << "still referenced once";
  pool.Release(a);
  EXPECT_EQ(pool.TryAllocate(), a);
  pool.MarkCached(a);
  pool.Release(a);
  EXPECT_EQ(pool.idle(), 1);
  EXPECT_FALSE(pool.TryAllocate().has_value()) << "idle blocks are evicted, not allocated";
  pool.AddRef(a);
  EXPECT_EQ(pool.idle(), 0);
  pool.Release(a);
  pool.ClearCached(a);
  EXPECT_EQ(pool.free(), 1);
  EXPECT_EQ(pool.peak_used(), 2);
  EXPECT_TRUE(pool.CheckInvariants().ok());
}

TEST(KvBlockPoolDeathTest, MisuseAborts) {
  KvBlockPool pool(1);
  EXPECT_DEATH(pool.Release(0), "");
  EXPECT_DEATH(pool.AddRef(0), "");
  EXPECT_DEATH(pool.MarkCached(0), "");
}

TEST(PrefixCache, FindsTheLongestCachedPrefix) {
  KvBlockPool pool(8);
  PrefixCache cache(&pool);
  const std::vector<int32_t> tokens = Tokens(0, 3);
  const int32_t b0 = *pool.TryAllocate(), b1 = *pool.TryAllocate();
  const auto n0 = cache.Insert(kPrefixRoot, BlockOf(tokens, 0), {b0});
  const auto n1 = cache.Insert(*n0, BlockOf(tokens, 1), {b1});
  ASSERT_TRUE(n1.has_value());
  EXPECT_EQ(cache.Find(tokens, 3).tables, (BlockTables{{b0, b1}}));
  EXPECT_EQ(cache.Find(tokens, 1).tables, (BlockTables{{b0}}));
  EXPECT_EQ(cache.Find(tokens, 0).node, kPrefixRoot);
  std::vector<int32_t> other = tokens;
  other[64 + 63] = -1;  // the last token of block 1
  EXPECT_EQ(cache.Find(other, 3).tables, (BlockTables{{b0}}));
  // The same tokens below another parent are another block.
  EXPECT_TRUE(cache.Find(std::vector<int32_t>(tokens.begin() + 64, tokens.end()), 1).blocks == 0);
  EXPECT_FALSE(cache.Insert(kPrefixRoot, BlockOf(tokens, 0), {*pool.TryAllocate()}).has_value()) << "cached already";
  EXPECT_TRUE(cache.CheckInvariants().ok());
}

TEST(PrefixCache, EvictsIdleLeavesLeastRecentlyUsedFirst) {
  KvBlockPool pool(8);
  PrefixCache cache(&pool);
  const std::vector<int32_t> x = Tokens(0, 2), y = Tokens(1000, 1), z = Tokens(2000, 1);
  std::vector<int32_t> blocks;
  const auto add = [&](PrefixNode parent, std::span<const int32_t> tokens) {
    blocks.push_back(*pool.TryAllocate());
    return *cache.Insert(parent, tokens, {blocks.back()});
  };
  const PrefixNode x0 = add(kPrefixRoot, BlockOf(x, 0));
  const PrefixNode x1 = add(x0, BlockOf(x, 1));
  add(kPrefixRoot, BlockOf(y, 0));
  add(kPrefixRoot, BlockOf(z, 0));
  EXPECT_FALSE(cache.EvictOne()) << "all are in use";
  for (const int32_t block : blocks) pool.Release(block);
  pool.AddRef(blocks[2]);  // y is in use again
  cache.Touch(x1);
  EXPECT_TRUE(cache.EvictOne());
  EXPECT_TRUE(cache.Find(z, 1).blocks == 0) << "z was the oldest that is idle";
  EXPECT_TRUE(cache.EvictOne());
  EXPECT_EQ(cache.Find(x, 2).blocks, 1) << "the leaf goes before its parent";
  EXPECT_TRUE(cache.EvictOne());
  EXPECT_FALSE(cache.EvictOne());
  EXPECT_EQ(cache.Find(y, 1).blocks, 1);
  EXPECT_EQ(cache.evictions(), 3);
  EXPECT_EQ(pool.free(), 7);
  EXPECT_TRUE(cache.CheckInvariants().ok());
  EXPECT_TRUE(pool.CheckInvariants().ok());
}

// A tree over groups {all, window of 64 tokens}, one node a block. The blocks are let go by whoever computed them.
class WindowedCache {
 public:
  explicit WindowedCache(const std::vector<int64_t>& windows) : pool_(64), cache_(&pool_, windows), windows_(windows) {}

  std::vector<int32_t> Allocate() {
    std::vector<int32_t> blocks;
    for (size_t group = 0; group < windows_.size(); group++) blocks.push_back(*pool_.TryAllocate());
    return blocks;
  }
  void Release(const std::vector<int32_t>& blocks) {
    for (const int32_t block : blocks) pool_.Release(block);
  }
  void Add(const std::vector<int32_t>& tokens) {
    PrefixNode node = kPrefixRoot;
    std::vector<std::vector<int32_t>> path;
    for (int64_t i = 0; i < static_cast<int64_t>(tokens.size()) / model::kKvBlockTokens; i++) {
      path.push_back(Allocate());
      const auto added = cache_.Insert(node, BlockOf(tokens, i), path.back());
      ASSERT_TRUE(added.has_value());
      node = *added;
    }
    for (const auto& blocks : path) Release(blocks);
  }
  void Check() {
    EXPECT_TRUE(cache_.CheckInvariants().ok()) << cache_.CheckInvariants();
    EXPECT_TRUE(pool_.CheckInvariants().ok()) << pool_.CheckInvariants();
  }
  KvBlockPool& pool() { return pool_; }
  PrefixCache& cache() { return cache_; }

 private:
  KvBlockPool pool_;
  PrefixCache cache_;
  std::vector<int64_t> windows_;
};

TEST(PrefixCache, APrefixIsFoundWhileItsLastWindowIsThere) {
  WindowedCache t({0, 64});
  const std::vector<int32_t> tokens = Tokens(0, 4);
  t.Add(tokens);
  const PrefixCache::Match whole = t.cache().Find(tokens, 4);
  ASSERT_EQ(whole.blocks, 4);
  EXPECT_EQ(whole.tables[1], (std::vector<int32_t>{-1, -1, -1, whole.tables[1][3]})) << "positions 193 to 255";
  // A hit needs block 3 alone of the window's: the others have not been needed since they came.
  t.cache().Touch(whole.node);
  for (int i = 0; i < 3; i++) ASSERT_TRUE(t.cache().EvictOne());
  t.Check();
  EXPECT_EQ(t.pool().free(), 64 - 5);
  EXPECT_EQ(t.cache().Find(tokens, 4).tables, whole.tables);
  EXPECT_EQ(t.cache().Find(tokens, 3).blocks, 0) << "without the window, a miss";
  ASSERT_TRUE(t.cache().EvictOne());
  EXPECT_EQ(t.cache().size(), 3) << "the leaf, with both of its blocks";
  while (t.cache().EvictOne()) t.Check();
  EXPECT_EQ(t.pool().free(), 64);
  EXPECT_EQ(t.cache().size(), 0);
}

TEST(PrefixCache, WhatWasEvictedOfAWindowIsFilledAgain) {
  WindowedCache t({0, 64});
  const std::vector<int32_t> tokens = Tokens(0, 2);
  t.Add(tokens);
  const PrefixNode first = t.cache().Find(tokens, 1).node;
  t.cache().Touch(t.cache().Find(tokens, 2).node);
  ASSERT_TRUE(t.cache().EvictOne());
  ASSERT_EQ(t.cache().Find(tokens, 1).blocks, 0);
  const std::vector<int32_t> again = t.Allocate();
  EXPECT_FALSE(t.cache().Insert(kPrefixRoot, BlockOf(tokens, 0), again).has_value()) << "the node is there";
  EXPECT_EQ(t.cache().Refill(kPrefixRoot, BlockOf(tokens, 0), again), first);
  EXPECT_FALSE(t.cache().Refill(first, BlockOf(tokens, 0), again).has_value()) << "no such node";
  t.Check();
  const PrefixCache::Match match = t.cache().Find(tokens, 1);
  EXPECT_EQ(match.blocks, 1);
  EXPECT_EQ(match.tables[1], std::vector<int32_t>{again[1]});
  EXPECT_NE(match.tables[0], std::vector<int32_t>{again[0]}) << "the first group keeps its own";
  // The leaf and then this node go while the new block is in use: it stays with its sequence.
  while (t.cache().EvictOne()) t.Check();
  EXPECT_EQ(t.cache().size(), 0);
  EXPECT_EQ(t.pool().used(), 2);
  t.Release(again);
  EXPECT_EQ(t.pool().free(), 64);
}

TEST(PrefixCache, WindowsAloneLeaveNoEmptyNodes) {
  WindowedCache t({64});
  const std::vector<int32_t> x = Tokens(0, 3), y = Tokens(1000, 1);
  t.Add(x);
  t.cache().Touch(t.cache().Find(x, 3).node);
  ASSERT_TRUE(t.cache().EvictOne());
  ASSERT_TRUE(t.cache().EvictOne());
  t.Check();
  EXPECT_EQ(t.cache().size(), 3) << "two of them are a path without blocks";
  EXPECT_EQ(t.cache().Find(x, 3).blocks, 3);
  EXPECT_EQ(t.cache().Find(x, 2).blocks, 0);
  ASSERT_TRUE(t.cache().EvictOne());
  EXPECT_EQ(t.cache().size(), 0) << "the leaf takes them with it";
  EXPECT_FALSE(t.cache().Insert(PrefixNode{1}, BlockOf(y, 0), t.Allocate()).has_value()) << "the parent is gone";
  EXPECT_FALSE(t.cache().Insert(kPrefixRoot, BlockOf(y, 0), {model::kNoKvBlock}).has_value()) << "nothing to keep";
  t.Check();
}

TEST(PrefixCache, HashesOfEqualPrefixesAreEqualAndOnlyThose) {
  std::vector<int32_t> a = Tokens(0, 4), b = a;
  b[100]++;
  const auto ha = PrefixHashes(a, 4), hb = PrefixHashes(b, 4);
  EXPECT_EQ(ha[0], hb[0]);
  for (size_t i = 1; i < 4; i++) EXPECT_NE(ha[i], hb[i]);
  EXPECT_EQ(PrefixHashes(a, 2), std::vector<uint64_t>(ha.begin(), ha.begin() + 2));
}

}  // namespace
}  // namespace iha::engine
