#include "model/transformer/attention_work.h"

#include <gtest/gtest.h>

#include <array>

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
  EXPECT_EQ(WorkOf(kLayout, groups).flops, 2.0 * (70 + 100) * (32 + 16));
}

TEST_F(AttentionWork, ASharedBlockIsReadOnce) {
  const std::array<AttentionGroup, 2> groups{
      {{.blocks = a_.data(), .rows = row_a_}, {.blocks = b_.data(), .rows = row_b_}}};
  EXPECT_EQ(WorkOf(kLayout, groups).bytes, (64 + 6 + 36) * kBytesPerKey);
}

TEST_F(AttentionWork, HeadsOfABlockAreNotShared) {
  const std::array<AttentionGroup, 2> groups{
      {{.blocks = a_.data(), .rows = row_a_}, {.blocks = a_.data(), .head_offset = kLayout.bytes(), .rows = row_a_}}};
  EXPECT_EQ(WorkOf(kLayout, groups).bytes, (70 + 70) * kBytesPerKey);
}

TEST_F(AttentionWork, AWindowReadsWhatItSees) {
  const std::array<AttentionRow, 2> rows{{{.first = 60, .last = 64}, {.first = 61, .last = 65}}};
  const std::array<AttentionGroup, 1> groups{{{.blocks = a_.data(), .rows = rows}}};
  EXPECT_EQ(WorkOf(kLayout, groups).bytes, 6 * kBytesPerKey);
  EXPECT_EQ(WorkOf(kLayout, groups).flops, 2.0 * (5 + 5) * (32 + 16));
}

TEST_F(AttentionWork, NoRowsNoWork) {
  const std::array<AttentionGroup, 1> groups{{{.blocks = a_.data(), .rows = {}}}};
  EXPECT_EQ(WorkOf(kLayout, groups).flops, 0);
  EXPECT_EQ(WorkOf(kLayout, groups).bytes, 0);
}

}  // namespace
}  // namespace iha::model
