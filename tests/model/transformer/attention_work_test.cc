#include "model/transformer/attention_work.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

namespace iha::model {
namespace {

using kernels::AttentionGroup;
using kernels::AttentionRow;

constexpr kernels::KvLayout kLayout{.type = kernels::StorageType::kBF16, .d = 32, .d_v = 16, .keys = 1};
constexpr double kBytesPerKey = (32 + 16) * 2;

// Two sequences whose first block is one and the same: 64 + 6 and 64 + 36 keys, the first 64 of them in common.
class AttentionWork : public testing::Test {
 protected:
  std::array<char, 3> memory_{};
  const std::array<const void*, 2> a_{&memory_[0], &memory_[1]}, b_{&memory_[0], &memory_[2]};
  const std::array<AttentionRow, 1> row_a_{{{.first = 0, .last = 69}}}, row_b_{{{.first = 0, .last = 99}}};
};

TEST_F(AttentionWork, PairsAreMultipliedTwice) {
  const std::array<AttentionGroup, 2> groups{
      {{.blocks = a_.data(), .rows = row_a_}, {.blocks = b_.data(), .rows = row_b_}}};
  EXPECT_EQ(WorkOf(kLayout, groups, 1).flops, 2.0 * (70 + 100) * (32 + 16));
}

TEST_F(AttentionWork, ASharedBlockIsReadOnce) {
  const std::array<AttentionGroup, 2> groups{
      {{.blocks = a_.data(), .rows = row_a_}, {.blocks = b_.data(), .rows = row_b_}}};
  EXPECT_EQ(WorkOf(kLayout, groups, 1).bytes, (64 + 6 + 36) * kBytesPerKey);
}

TEST_F(AttentionWork, EveryHeadHasItsOwnKeysAndValues) {
  std::vector<AttentionGroup> groups;
  for (const auto& [blocks, row] : {std::pair{a_.data(), row_a_.data()}, {b_.data(), row_b_.data()}}) {
    for (size_t head = 0; head < 3; head++) {
      groups.push_back({.blocks = blocks, .head_offset = head * kLayout.bytes(), .rows = {row, 1}});
    }
  }
  EXPECT_EQ(WorkOf(kLayout, groups, 3).flops, 3 * 2.0 * (70 + 100) * (32 + 16));
  EXPECT_EQ(WorkOf(kLayout, groups, 3).bytes, 3 * (64 + 6 + 36) * kBytesPerKey);
}

// Differential attention: two parts of keys, one of values.
TEST_F(AttentionWork, ValuesThatHeadsShareAreReadOnce) {
  constexpr kernels::KvLayout kPair{.type = kernels::StorageType::kBF16, .d = 32, .d_v = 64, .keys = 2};
  const std::array<AttentionGroup, 2> groups{
      {{.blocks = a_.data(), .rows = row_a_, .key = 0}, {.blocks = a_.data(), .rows = row_a_, .key = 1}}};
  EXPECT_EQ(WorkOf(kPair, groups, 2).flops, 2 * 2.0 * 70 * (32 + 64));
  EXPECT_EQ(WorkOf(kPair, groups, 2).bytes, 70 * (2 * 32 + 64) * 2.0);
}

TEST_F(AttentionWork, AWindowReadsWhatItSees) {
  const std::array<AttentionRow, 2> rows{{{.first = 60, .last = 64}, {.first = 61, .last = 65}}};
  const std::array<AttentionGroup, 1> groups{{{.blocks = a_.data(), .rows = rows}}};
  EXPECT_EQ(WorkOf(kLayout, groups, 1).bytes, 6 * kBytesPerKey);
  EXPECT_EQ(WorkOf(kLayout, groups, 1).flops, 2.0 * (5 + 5) * (32 + 16));
}

TEST_F(AttentionWork, NoRowsNoWork) {
  const std::array<AttentionGroup, 1> groups{{{.blocks = a_.data(), .rows = {}}}};
  EXPECT_EQ(WorkOf(kLayout, groups, 1).flops, 0);
  EXPECT_EQ(WorkOf(kLayout, groups, 1).bytes, 0);
}

}  // namespace
}  // namespace iha::model
