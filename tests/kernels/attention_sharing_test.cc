// Groups that share key blocks: how they are cut into jobs, and that sharing changes no bit.
#include <atomic>
#include <cstring>
#include <random>
#include <set>
#include <string>

#include "kernels/attention/attention_jobs.h"
#include "kernels/support/aligned.h"
#include "kernels/support/thread_pool.h"
#include "tests/kernels/kernel_test_util.h"

namespace iha::kernels {
namespace {

const char kPlaces[256] = {};  // block "addresses" that compare in the order of their index
// '.' is an entry that must not be read.
std::vector<const void*> TableOf(const std::string& names) {
  std::vector<const void*> table;
  for (const char name : names) table.push_back(name == '.' ? nullptr : &kPlaces[static_cast<size_t>(name)]);
  return table;
}

struct GroupSpec {
  std::string blocks;  // a letter for each
  size_t rows = 1;
  uint32_t first = 0;  // of each row; last is the end of the table, or:
  uint32_t last = 0;
  size_t head_offset = 0;
  size_t key = 0;
};

// "0:0+3 1:0+3|2:0+1": jobs in order, pieces as group:first_row+rows.
std::string Cut(const std::vector<GroupSpec>& specs, const AttentionCut& cut) {
  std::vector<std::vector<const void*>> tables;
  std::vector<std::vector<AttentionRow>> rows;
  std::vector<AttentionGroup> groups;
  for (const GroupSpec& spec : specs) {
    tables.push_back(TableOf(spec.blocks));
    const auto end = static_cast<uint32_t>(spec.blocks.size() * kKeyBlock) - 1;
    rows.emplace_back(spec.rows, AttentionRow{.first = spec.first, .last = spec.last != 0 ? spec.last : end});
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    groups.push_back(
        {.blocks = tables[i].data(), .head_offset = specs[i].head_offset, .rows = rows[i], .key = specs[i].key});
  }
  std::string text;
  for (const AttentionJob& job : CutAttention(groups, cut, {1, 1})) {
    if (!text.empty()) text += '|';
    size_t in_job = 0, visible = 0;
    for (const AttentionPiece& piece : job.pieces) {
      if (&piece != job.pieces.data()) text += ' ';
      text += std::to_string(piece.group - groups.data()) + ":";
      text += std::to_string(piece.first_row) + "+";
      text += std::to_string(piece.rows);
      in_job += piece.rows;
      visible += piece.rows * (piece.group->rows[0].last + size_t{1} - piece.group->rows[0].first);
    }
    EXPECT_EQ(job.rows, in_job);
    EXPECT_EQ(job.visible, visible);
  }
  return text;
}

TEST(AttentionJobs, GroupsThatShareBlocksGoTogether) {
  const struct {
    const char* what;
    std::vector<GroupSpec> groups;
    AttentionCut cut;
    const char* jobs;
  } cases[] = {
      {"no group", {}, {8, 8}, ""},
      {"a group without rows", {{"a", 0}}, {8, 8}, ""},
      {"one group", {{"abc", 3}}, {8, 8}, "0:0+3"},
      {"nothing shared", {{"ab", 3}, {"cd", 3}}, {8, 8}, "0:0+3 1:0+3"},
      {"nothing shared, together too large", {{"ab", 3}, {"cd", 3}, {"ef", 3}}, {8, 8}, "0:0+3 1:0+3|2:0+3"},
      {"the first block shared", {{"ab", 3}, {"ac", 3}}, {8, 8}, "0:0+3 1:0+3"},
      {"all shared", {{"ab", 3}, {"ab", 3}}, {8, 8}, "0:0+3 1:0+3"},
      {"a table that begins another", {{"abc", 3}, {"ab", 2}}, {8, 8}, "1:0+2 0:0+3"},
      {"two families, mixed", {{"ax", 2}, {"bx", 2}, {"ay", 2}, {"by", 2}}, {8, 8}, "0:0+2 2:0+2 1:0+2 3:0+2"},
      {"two families, each a job", {{"ax", 2}, {"bx", 2}, {"ay", 2}, {"by", 2}}, {6, 6}, "0:0+2 2:0+2|1:0+2 3:0+2"},
      {"the longer the common part, the nearer",
       {{"abx"}, {"acx"}, {"aby"}, {"acy"}},
       {8, 8},
       "0:0+1 2:0+1 1:0+1 3:0+1"},
      {"another head", {{"ab", 1, 0, 0, 0}, {"ab", 1, 0, 0, 64}}, {8, 8}, "0:0+1|1:0+1"},
      {"another key of the head", {{"ab", 1, 0, 0, 0, 0}, {"ab", 1, 0, 0, 0, 1}}, {8, 8}, "0:0+1|1:0+1"},
      {"windows that both see a block", {{"..bc", 1, 128}, {"abcd", 1, 64}}, {1, 1}, "1:0+1|0:0+1"},
      {"windows, the same chain", {{"..cd", 1, 128}, {"abcd", 1, 64}}, {8, 8}, "0:0+1 1:0+1"},
      {"windows that see no block both", {{"a.", 1, 0, 63}, {".b", 1, 64}}, {8, 8}, "0:0+1 1:0+1"},
      {"entries past the last key", {{"a.", 1, 0, 63}, {"a.", 1, 0, 63}}, {8, 8}, "0:0+1 1:0+1"},
      {"a large group alone", {{"ab", 20}}, {8, 8}, "0:6+7|0:13+7|0:0+6"},
      {"jobs end between groups", {{"ab", 3}, {"ac", 3}, {"ad", 3}, {"ae", 3}}, {6, 6}, "0:0+3 1:0+3|2:0+3 3:0+3"},
      {"small groups stay whole", {{"ab", 4}, {"ac", 4}, {"ad", 4}}, {8, 6}, "1:0+4 2:0+4|0:0+4"},
      {"what sees most comes first", {{"a"}, {"bc"}, {"def"}}, {1, 1}, "2:0+1|1:0+1|0:0+1"},
  };
  for (const auto& c : cases) EXPECT_EQ(Cut(c.groups, c.cut), c.jobs) << c.what;
}

// Key blocks in memory; bytes that nobody writes are NaN.
class Pool {
 public:
  explicit Pool(size_t bytes) : bytes_(bytes) {}
  char* New() {
    memory_.push_back(MakeAligned<char>(bytes_));
    std::memset(memory_.back().get(), 0xFF, bytes_);
    return memory_.back().get();
  }
  const void* Copy(const void* block) { return std::memcpy(New(), block, bytes_); }

 private:
  size_t bytes_;
  std::vector<AlignedArray<char>> memory_;
};

struct Batch {
  std::vector<std::vector<const void*>> tables;
  std::vector<size_t> tokens;
};

// Sequences that go on from blocks of earlier ones, from the whole of one, or from nothing.
Batch RandomTree(std::mt19937& bits, const KvLayout& layout, size_t head_offset, size_t sequences, Pool& pool) {
  Batch batch;
  for (size_t s = 0; s < sequences; ++s) {
    std::vector<const void*> table;
    if (s > 0 && bits() % 4 != 0) {
      const size_t parent = bits() % s;
      table = batch.tables[parent];
      table.resize(bits() % (batch.tokens[parent] / kKeyBlock + 1));  // its full blocks
    }
    size_t tokens = table.size() * kKeyBlock;
    if (tokens > 0 && bits() % 4 == 0) {
      tokens -= bits() % kKeyBlock;  // a strict prefix: it sees a part of its last block
    } else {
      for (const size_t end = tokens + 1 + bits() % 200; tokens < end; ++tokens) {
        if (tokens % kKeyBlock == 0) table.push_back(pool.New());
        char* block = static_cast<char*>(const_cast<void*>(table.back())) + head_offset;
        AppendKv(layout, block, tokens % kKeyBlock, RandomFloats(layout.keys * layout.d, bits(), 2).data(),
                 RandomFloats(layout.d_v, bits()).data());
      }
    }
    batch.tables.push_back(table);
    batch.tokens.push_back(tokens);
  }
  return batch;
}

struct SharingCase {
  StorageType type;
  size_t d, d_v, keys, heads;  // heads: rows of one position
  uint32_t window;
};
const SharingCase kSharingCases[] = {
    {StorageType::kF32, 64, 64, 1, 3, 0},  {StorageType::kF32, 20, 40, 2, 1, 0},
    {StorageType::kF32, 32, 16, 1, 4, 70}, {StorageType::kBF16, 64, 64, 1, 3, 0},
    {StorageType::kBF16, 24, 96, 1, 2, 1}, {StorageType::kBF16, 16, 16, 2, 7, 200},
};

class BlocksOfTable final : public KeyBlockMaker {
 public:
  BlocksOfTable(const std::vector<const void*>& table, size_t head_offset, const KvLayout& layout,
                std::atomic<int>& calls)
      : table_(table), head_offset_(head_offset), layout_(layout), calls_(calls) {}
  void Make(size_t b, size_t slots, void* block) const override {
    EXPECT_GT(slots, 0u);
    EXPECT_LE(slots, kKeyBlock);
    std::memset(block, 0xFF, layout_.bytes());
    const void* from = static_cast<const char*>(table_[b]) + head_offset_;
    std::vector<float> k(layout_.keys * layout_.d), v(layout_.d_v);
    for (size_t slot = 0; slot < slots; ++slot) {
      for (size_t i = 0; i < k.size(); ++i) k[i] = KeyAt(layout_, from, slot, i % layout_.d, i / layout_.d);
      for (size_t i = 0; i < v.size(); ++i) v[i] = ValueAt(layout_, from, slot, i);
      AppendKv(layout_, block, slot, k.data(), v.data());
    }
    ++calls_;
  }
  const void* Source(size_t b) const override { return table_[b]; }

 private:
  const std::vector<const void*>& table_;
  size_t head_offset_;
  KvLayout layout_;
  std::atomic<int>& calls_;
};

// Last positions of every sequence: one (decode), or a chunk of a prompt.
std::vector<AttentionRow> RowsOf(const SharingCase& c, size_t tokens, size_t positions, const float* q, float* out) {
  std::vector<AttentionRow> rows;
  for (size_t t = tokens - std::min(tokens, positions); t < tokens; ++t) {
    for (size_t h = 0; h < c.heads; ++h) {
      const size_t r = rows.size();
      rows.push_back(
          {q + r * c.d, out + r * c.d_v, FirstVisible(static_cast<uint32_t>(t), c.window), static_cast<uint32_t>(t)});
    }
  }
  return rows;
}

TEST(AttentionSharing, GroupsWithCommonBlocksGiveTheBitsOfEachAlone) {
  constexpr size_t kHeadOffset = 192, kSequences = 12, kMost = 40;  // positions of a chunk
  SerialFor serial;
  ThreadPool one(1), three(3), sixteen(16);
  int counted = 0;
  for (uint32_t seed = 0; seed < 12; ++seed) {
    const SharingCase& c = kSharingCases[seed % std::size(kSharingCases)];
    const KvLayout layout{c.type, c.d, c.d_v, c.keys};
    std::mt19937 bits(seed);
    Pool pool(kHeadOffset + layout.bytes());
    const Batch batch = RandomTree(bits, layout, kHeadOffset, kSequences, pool);
    const size_t row_count = kMost * c.heads, groups_count = kSequences * c.keys;
    const std::vector<float> q = RandomFloats(groups_count * row_count * c.d, seed + 1, 3);
    std::vector<float> got(groups_count * row_count * c.d_v), want(got.size());
    std::vector<std::vector<AttentionRow>> rows, want_rows;
    std::vector<std::vector<const void*>> copies;
    for (const auto& table : batch.tables) {
      copies.emplace_back();
      for (const void* block : table) copies.back().push_back(pool.Copy(block));
    }
    std::vector<AttentionGroup> groups, made, want_groups;
    std::vector<BlocksOfTable> makers;
    std::atomic<int> calls = 0;
    std::set<std::pair<const void*, size_t>> distinct;  // blocks that some row sees, by key (without windows)
    size_t all_rows = 0;
    makers.reserve(groups_count);
    rows.reserve(groups_count);
    want_rows.reserve(groups_count);
    for (size_t g = 0; g < groups_count; ++g) {
      const size_t s = g / c.keys, at = g * row_count, positions = bits() % 3 == 0 ? 1 + bits() % kMost : 1;
      rows.push_back(RowsOf(c, batch.tokens[s], positions, &q[at * c.d], &got[at * c.d_v]));
      want_rows.push_back(RowsOf(c, batch.tokens[s], positions, &q[at * c.d], &want[at * c.d_v]));
      const auto group = [&](const auto& table, const auto& of) {
        return AttentionGroup{.blocks = table.data(), .head_offset = kHeadOffset, .rows = of, .key = g % c.keys};
      };
      groups.push_back(group(batch.tables[s], rows.back()));
      want_groups.push_back(group(copies[s], want_rows.back()));
      makers.emplace_back(batch.tables[s], kHeadOffset, layout, calls);
      made.push_back(group(batch.tables[s], rows.back()));
      made.back().maker = &makers.back();
      all_rows += rows.back().size();
      for (size_t b = 0; b <= rows.back().back().last / kKeyBlock; ++b) {
        distinct.emplace(batch.tables[s][b], g % c.keys);
      }
    }
    ForEachTarget([&](const SimdTarget& target) {
      if (!target.vectorized && seed >= std::size(kSharingCases)) return;
      for (const AttentionGroup& group : want_groups) Attention(layout, 0.2f, {&group, 1}, serial);
      for (ThreadPool* threads : {&one, &three, &sixteen}) {
        for (const auto* of : {&groups, &made}) {
          std::fill(got.begin(), got.end(), 0.0f);
          calls = 0;
          Attention(layout, 0.2f, *of, *threads);
          ASSERT_EQ(FirstDifference(got, want), -1)
              << "seed " << seed << " threads " << threads->Threads() << (of == &made ? ", made blocks" : "");
          // Blocks in common are made once where one job has all the rows.
          const size_t one_job = kMadeBlockTiles * 5;
          if (of == &groups || threads != &one || c.window != 0 || !target.vectorized || all_rows > one_job) continue;
          EXPECT_EQ(static_cast<size_t>(calls), distinct.size()) << "seed " << seed;
          ++counted;
        }
      }
    });
  }
  EXPECT_GT(counted, 0);
}

// Every row is in one job; a job has one head; a piece is cut only where its group is too large.
TEST(AttentionJobs, EveryRowIsInOneJob) {
  const KvLayout layout{StorageType::kF32, 1, 1};
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 bits(seed);
    Pool pool(layout.bytes());
    const Batch batch = RandomTree(bits, layout, 0, 10, pool);
    std::vector<std::vector<AttentionRow>> rows;
    std::vector<AttentionGroup> groups;
    rows.reserve(20);
    for (size_t g = 0; g < 20; ++g) {
      const SharingCase c{StorageType::kF32, 1, 1, 1, 1 + bits() % 4, bits() % 2 == 0 ? 0 : 100u};
      rows.push_back(RowsOf(c, batch.tokens[g / 2], bits() % 30, nullptr, nullptr));
      groups.push_back({.blocks = batch.tables[g / 2].data(), .head_offset = g % 2 * 64, .rows = rows.back()});
    }
    const AttentionCut cut{1 + bits() % 20, 1 + bits() % 20};
    std::set<const AttentionRow*> seen;
    size_t all = 0;
    for (const auto& of : rows) all += of.size();
    for (const AttentionJob& job : CutAttention(groups, cut, cut)) {
      ASSERT_FALSE(job.pieces.empty());
      for (const AttentionPiece& piece : job.pieces) {
        EXPECT_EQ(piece.group->head_offset, job.pieces.front().group->head_offset);
        EXPECT_GT(piece.rows, 0u);
        EXPECT_LE(piece.rows, cut.piece_rows);
        EXPECT_TRUE(piece.group->rows.size() > cut.piece_rows || piece.rows == piece.group->rows.size());
        for (size_t r = 0; r < piece.rows; ++r) {
          EXPECT_TRUE(seen.insert(&piece.group->rows[piece.first_row + r]).second);
        }
      }
    }
    EXPECT_EQ(seen.size(), all);
  }
}

}  // namespace
}  // namespace iha::kernels
