#include "model/transformer/rope_tables.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/rope/rope.h"
#include "model/checkpoint/rope.h"

namespace iha::model {
namespace {

constexpr int64_t kHeadDim = 8;
constexpr size_t kHalf = kHeadDim / 2;

checkpoint::RopeSpec Spec(double theta, double factor) {
  checkpoint::RopeSpec spec;
  spec.theta = theta;
  spec.attention_factor = factor;
  return spec;
}

// The rows of a table that was filled from position 0 in one call.
struct Whole {
  Whole(const checkpoint::RopeSpec& spec, size_t positions) : cos(positions * kHalf), sin(positions * kHalf) {
    const std::vector<double> frequency = checkpoint::InverseFrequencies(spec, kHeadDim);
    kernels::FillRopeTable(frequency.data(), kHalf, 0, positions, spec.attention_factor, cos.data(), sin.data());
  }
  std::vector<float> cos, sin;
};

void ExpectRows(const RopeTable& table, const Whole& whole, uint32_t step, uint32_t rows) {
  for (uint32_t row = 0; row < rows; row++) {
    for (size_t i = 0; i < kHalf; i++) {
      ASSERT_EQ(table.cos[row * kHalf + i], whole.cos[row * step * kHalf + i]) << "row " << row << " of step " << step;
      ASSERT_EQ(table.sin[row * kHalf + i], whole.sin[row * step * kHalf + i]) << "row " << row << " of step " << step;
    }
  }
}

// Every step in turn and in growing lengths, past what one growth adds: the same bits as one table of all positions.
TEST(RopeTablesTest, ARowIsItsPositionTimesTheStepHoweverTheTableGrew) {
  const std::vector<checkpoint::RopeSpec> specs = {Spec(10000, 1.0), Spec(500, 1.25)};
  RopeTables tables(specs, kHeadDim);
  for (int32_t rope = 0; rope < 2; rope++) {
    const Whole whole(specs[static_cast<size_t>(rope)], 20 * 700);
    for (const uint32_t last : {0u, 255u, 256u, 257u, 3u, 699u}) {
      for (const uint32_t step : {1u, 3u, 20u}) {
        ExpectRows(tables.Rows(rope, step, last), whole, step, last + 1);
      }
    }
  }
}

TEST(RopeTablesTest, AnotherStepLeavesATableWhereItIs) {
  const std::vector<checkpoint::RopeSpec> specs = {Spec(10000, 1.0)};
  RopeTables tables(specs, kHeadDim);
  const RopeTable one = tables.Rows(0, 1, 100);
  tables.Rows(0, 20, 5000);
  EXPECT_EQ(tables.Rows(0, 1, 100).cos, one.cos);
  EXPECT_EQ(tables.Rows(0, 1, 100).sin, one.sin);
}

}  // namespace
}  // namespace iha::model
