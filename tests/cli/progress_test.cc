// The live line: what it counts, and an estimate from this run's own speed.
#include "cli/run/progress.h"

#include <gtest/gtest.h>

namespace iha::cli {
namespace {

JobProgress Job(const std::string& model, int64_t planned, int64_t scored, int64_t unscored = 0) {
  JobProgress job;
  job.model = model;
  job.entry = "gsm8k k=1 T=0";
  job.planned = planned;
  job.scored = scored;
  job.unscored = unscored;
  return job;
}

TEST(Progress, CountsScoredAndUnscoredItems) {
  SweepProgress progress;
  progress.jobs = {Job("a", 10, 4, 1), Job("b", 20, 0)};
  EXPECT_EQ(FinishedItems(progress), 5);
  EXPECT_EQ(PlannedItems(progress), 30);
}

TEST(Progress, TheEstimateLeavesResumedItemsOut) {
  SweepProgress progress;
  progress.tokens_per_second = 141.4;
  progress.live_workers = 1;
  progress.jobs = {Job("a", 100, 50)};
  ProgressMeter meter;
  EXPECT_EQ(meter.Line(progress, absl::Seconds(3), 200), "50/100 items · 141 tokens/s · 1 worker");
  // 10 items in 20 s: 40 more need 80 s. With the 50 resumed ones it would say 13 s.
  progress.jobs = {Job("a", 100, 60)};
  EXPECT_EQ(meter.Line(progress, absl::Seconds(23), 200), "60/100 items · 141 tokens/s · 1 worker · ETA 1m20s");
  progress.jobs = {Job("a", 100, 100)};
  EXPECT_EQ(meter.Line(progress, absl::Seconds(90), 200), "100/100 items · 141 tokens/s · 1 worker");
}

TEST(Progress, SeveralJobsShowTheCurrentOne) {
  SweepProgress progress;
  progress.live_workers = 2;
  progress.jobs = {Job("a", 10, 10), Job("b", 10, 0), Job("c", 10, 3)};
  ProgressMeter meter;
  EXPECT_EQ(meter.Line(progress, absl::ZeroDuration(), 200),
            "gsm8k · c 3/10 · total 13/30 items · 0 tokens/s · 2 workers");
  progress.jobs[2] = Job("c", 10, 10);
  EXPECT_EQ(meter.Line(progress, absl::Seconds(7), 200),
            "gsm8k · b 0/10 · total 20/30 items · 0 tokens/s · 2 workers · ETA 10s");
}

TEST(Progress, LinesOfALogGrowApart) {
  ProgressPace pace;
  std::vector<int> due;
  for (int second = 0; second <= 1500; second++) {
    if (pace.Due(absl::Seconds(second))) due.push_back(second);
  }
  EXPECT_EQ(due, (std::vector<int>{10, 20, 40, 80, 160, 320, 620, 920, 1220}));
}

TEST(Progress, TheLineFitsAndIsSafe) {
  SweepProgress progress;
  progress.jobs = {Job("evil\x1b[31m", 10, 3), Job("b", 10, 0)};
  ProgressMeter meter;
  const std::string line = meter.Line(progress, absl::ZeroDuration(), 30);
  EXPECT_EQ(line.find('\x1b'), std::string::npos);
  EXPECT_LE(line.size(), 30u + 8);  // a middle dot is two bytes
}

}  // namespace
}  // namespace iha::cli
