// How the batch shrinks after a step without memory and grows again.
#include "worker/engine/batch_limit.h"

#include <gtest/gtest.h>

namespace iha::engine {
namespace {

TEST(BatchLimit, EachStepByTable) {
  struct Case {
    const char* what;
    BatchLimit before;
    bool fitted;
    int32_t running;
    int32_t now;
    int32_t good_steps;
  };
  constexpr int32_t kLast = kGoodSteps - 1;
  const Case cases[] = {
      {"a shortage halves what ran", {64, 64, 0}, false, 40, 20, 0},
      {"not what was allowed", {64, 64, 0}, false, 9, 4, 0},
      {"one runs always", {64, 64, 0}, false, 2, 1, 0},
      {"and a shortage forgets the good steps", {64, 20, kLast}, false, 20, 10, 0},
      {"what ran is never above the limit", {4, 4, 0}, false, 12, 4, 0},
      {"the configured limit stays", {64, 64, 0}, true, 64, 64, 0},
      {"a good step counts", {64, 20, 5}, true, 20, 20, 6},
      {"one with fewer does not", {64, 20, 5}, true, 19, 20, 5},
      {"and so does one with more", {64, 20, 5}, true, 21, 20, 6},
      {"enough of them allow one more", {64, 20, kLast}, true, 20, 21, 0},
      {"up to the limit", {21, 20, kLast}, true, 20, 21, 0},
      {"from one on", {64, 1, kLast}, true, 1, 2, 0},
  };
  for (const Case& c : cases) {
    const BatchLimit after = c.fitted ? AfterGoodStep(c.before, c.running) : AfterShortage(c.before, c.running);
    EXPECT_EQ(after.now, c.now) << c.what;
    EXPECT_EQ(after.good_steps, c.good_steps) << c.what;
    EXPECT_EQ(after.configured, c.before.configured) << c.what;
  }
}

TEST(BatchLimit, IsBackAfterAPassingShortageAndStaysBelowALastingOne) {
  BatchLimit limit{.configured = 16, .now = 16, .good_steps = 0};
  limit = AfterShortage(limit, 16);
  for (int step = 0; step < 8 * kGoodSteps; step++) limit = AfterGoodStep(limit, limit.now);
  EXPECT_EQ(limit.now, 16);
  int shortages = 0;
  constexpr int kSteps = 100 * kGoodSteps;
  for (int step = 0; step < kSteps; step++) {
    const bool fits = limit.now <= 5;
    shortages += fits ? 0 : 1;
    limit = fits ? AfterGoodStep(limit, limit.now) : AfterShortage(limit, limit.now);
    EXPECT_LE(limit.now, 16);
  }
  EXPECT_LE(shortages, 2 + kSteps / kGoodSteps / 2) << "a lasting shortage costs few steps";
}

}  // namespace
}  // namespace iha::engine
