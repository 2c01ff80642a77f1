#include "kernels/matmul/panel_cut.h"

#include <gtest/gtest.h>

#include <vector>

namespace iha::kernels {
namespace {

struct Case {
  size_t panels, threads, most_rounds;
  size_t rounds;
  std::vector<size_t> begins;  // the end of the last job too
};

TEST(PanelCut, Table) {
  const Case cases[] = {
      {1, 4, 8, 1, {0, 1}},                               // fewer panels than threads
      {15, 4, 8, 1, {0, 15}},                             // not enough for two jobs
      {16, 4, 1, 1, {0, 8, 16}},                          // two of the four threads
      {36, 2, 1, 1, {0, 18, 36}},                         // one row of 576 outputs
      {37, 2, 1, 1, {0, 18, 37}},                         // the odd one goes to the last
      {36, 2, 2, 2, {0, 12, 24, 30, 36}},                 // whole tiles, then equal shares
      {96, 2, 2, 2, {0, 32, 64, 80, 96}},                 //
      {97, 3, 2, 2, {0, 20, 40, 60, 72, 84, 97}},         //
      {64, 2, 8, 4, {0, 8, 16, 24, 32, 40, 48, 56, 64}},  // 8 rounds would be 4 panels a job
  };
  for (const Case& c : cases) {
    const PanelCut cut(c.panels, c.threads, c.most_rounds);
    EXPECT_EQ(cut.rounds(), c.rounds);
    std::vector<size_t> begins;
    for (size_t j = 0; j <= cut.jobs(); j++) begins.push_back(cut.Begin(j));
    EXPECT_EQ(begins, c.begins) << c.panels << " panels, " << c.threads << " threads, rounds " << c.most_rounds;
  }
}

TEST(PanelCut, EveryJobHasItsPanelsAndTheFirstEvenOnes) {
  for (size_t panels = 1; panels < 700; panels++) {
    for (size_t threads = 1; threads <= 17; threads++) {
      for (const size_t rounds : {1, 2, 8}) {
        const PanelCut cut(panels, threads, rounds);
        ASSERT_EQ(cut.Begin(0), 0u);
        ASSERT_EQ(cut.Begin(cut.jobs()), panels);
        ASSERT_LE(cut.jobs(), rounds * threads);
        for (size_t j = 0; j < cut.jobs(); j++) {
          const size_t size = cut.Begin(j + 1) - cut.Begin(j);
          ASSERT_LT(cut.Begin(j), cut.Begin(j + 1)) << panels << " panels, " << threads << " threads, job " << j;
          ASSERT_TRUE(cut.jobs() == 1 || size >= 6) << size;  // 8, less what rounding to even takes
          ASSERT_TRUE(j + 1 == cut.jobs() || size % 2 == 0);
          ASSERT_TRUE(cut.rounds() != 2 || j >= threads || size % 4 == 0) << "whole tiles first";
        }
      }
    }
  }
}

}  // namespace
}  // namespace iha::kernels
