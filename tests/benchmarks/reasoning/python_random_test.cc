// CPython's generator and sample(), against values of CPython 3.11 and the draws of lm-evaluation-harness.
#include "benchmarks/python_random.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/roots.h"

namespace iha::benchmarks {
namespace {

TEST(PythonRandom, FirstOutputsOfSeed1234) {
  PythonRandom random(1234);
  for (const uint32_t expected : {4150886329u, 3342196574u, 1892932127u, 501869158u}) {
    EXPECT_EQ(random.NextUint32(), expected);
  }
}

TEST(PythonRandom, SeedsOfMoreThan32BitsUseTwoDigits) {
  // random.Random(2**40 + 7).getrandbits(32)
  EXPECT_EQ(PythonRandom((uint64_t{1} << 40) + 7).NextUint32(), 2635837658u);
}

TEST(PythonRandom, SampleIsADrawWithoutReplacementOnBothPaths) {
  PythonRandom random(5);
  for (const auto& [pool, count] :
       std::vector<std::pair<int32_t, int32_t>>{{5, 5}, {21, 5}, {22, 5}, {85, 8}, {86, 8}}) {
    const std::vector<int32_t> rows = random.Sample(pool, count);
    const std::set<int32_t> distinct(rows.begin(), rows.end());
    EXPECT_EQ(distinct.size(), static_cast<size_t>(count));
    EXPECT_GE(*distinct.begin(), 0);
    EXPECT_LT(*distinct.rbegin(), pool);
  }
  EXPECT_TRUE(random.Sample(5, 0).empty());
}

// random.Random(seed).sample(range(pool), count) of CPython 3.11, with seeds for which the two paths differ.
TEST(PythonRandom, SampleAsCPython) {
  using Rows = std::vector<int32_t>;
  EXPECT_EQ(PythonRandom(0).Sample(5, 5), (Rows{3, 4, 0, 1, 2}));
  EXPECT_EQ(PythonRandom(2).Sample(21, 5), (Rows{1, 2, 19, 11, 5}));
  EXPECT_EQ(PythonRandom(2).Sample(22, 5), (Rows{1, 2, 11, 5, 21}));
  EXPECT_EQ(PythonRandom(3).Sample(85, 8), (Rows{30, 75, 69, 16, 47, 77, 60, 74}));
  EXPECT_EQ(PythonRandom(2).Sample(86, 8), (Rows{7, 11, 10, 46, 21, 85, 39, 32}));
}

TEST(PythonRandom, DrawsOfLmEval) {
  IHA_REQUIRE_CASES(cases);
  const auto file = nlohmann::json::parse(std::ifstream(cases + "/lm_eval/draws_gsm8k.json"), nullptr, false);
  ASSERT_FALSE(file.is_discarded());
  PythonRandom random(file["seed"].get<uint64_t>());
  const int32_t pool = file["pool_rows"], count = file["k"];
  ASSERT_EQ(file["train_rows"].size(), 660u);
  for (const auto& row : file["train_rows"]) {
    EXPECT_EQ(random.Sample(pool, count), row.get<std::vector<int32_t>>());
  }
  // Each rank makes its own generator, and each document it sees takes one draw, whatever its number.
  for (const auto& run : file["other_runs"]) {
    PythonRandom rank(run["seed"].get<uint64_t>());
    for (const auto& row : run["train_rows"])
      EXPECT_EQ(rank.Sample(pool, count), row.get<std::vector<int32_t>>()) << run;
  }
}

}  // namespace
}  // namespace iha::benchmarks
