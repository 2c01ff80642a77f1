// Workers that die: started again after a pause that grows, until it is enough.
#include "cli/run/local_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "common/file.h"
#include "tests/support/temp_dir.h"

namespace iha::cli {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;

class LocalWorkersTest : public ::testing::Test {
 protected:
  // The program: says that it lives, waits for the file "die", ends with the code that is in it.
  LocalWorkerOptions Options(int max_restarts) {
    const std::string program = dir_.File("worker.sh");
    std::ofstream(program) << "#!/bin/sh\n"
                           << "echo life >> " << dir_.File("lives") << "\n"
                           << "while [ ! -e " << dir_.File("die") << " ]; do sleep 0.01; done\n"
                           << "code=$(cat " << dir_.File("die") << "); rm " << dir_.File("die") << "\n"
                           << "echo last words; exit $code\n";
    EXPECT_EQ(chmod(program.c_str(), 0755), 0);
    LocalWorkerOptions options;
    options.program = program;
    options.log_folder = dir_.path();
    options.max_restarts = max_restarts;
    options.backoff = {.initial = absl::Seconds(1), .maximum = absl::Seconds(3), .multiplier = 2, .jitter = 0};
    options.long_life = absl::Seconds(60);
    return options;
  }
  int64_t Lives() const {
    const std::string text = ReadFile(dir_.File("lives")).value_or("");
    return std::count(text.begin(), text.end(), '\n');
  }
  void AwaitLives(int64_t count) const {
    const absl::Time limit = absl::Now() + absl::Seconds(60);
    while (Lives() < count && absl::Now() < limit) absl::SleepFor(absl::Milliseconds(5));
    ASSERT_EQ(Lives(), count);
  }
  // Lets the living worker end, and looks until its end was seen.
  absl::Status Die(LocalWorkers& workers, int code) const {
    WriteCode(code);
    const int before = workers.restarts();
    const absl::Time limit = absl::Now() + absl::Seconds(60);
    while (absl::Now() < limit) {
      if (absl::Status status = workers.Watch(); !status.ok()) return status;
      if (workers.restarts() != before) return absl::OkStatus();
      absl::SleepFor(absl::Milliseconds(5));
    }
    return absl::DeadlineExceededError("its end was not seen");
  }
  // In one step, so that the worker never reads half a file.
  void WriteCode(int code) const {
    std::ofstream(dir_.File("code")) << code << "\n";
    std::filesystem::rename(dir_.File("code"), dir_.File("die"));
  }

  TempDir dir_;
  SimulatedClock clock_;
};

TEST_F(LocalWorkersTest, ThePauseGrowsWithEachShortLifeAndStartsAnewAfterALongOne) {
  LocalWorkers workers(Options(8), clock_);
  ASSERT_TRUE(workers.Start().ok());
  AwaitLives(1);
  int64_t lives = 1;
  for (const double pause : {1.0, 2.0, 3.0, 3.0}) {
    ASSERT_TRUE(Die(workers, 1).ok());
    clock_.Advance(absl::Seconds(pause - 0.01));
    ASSERT_TRUE(workers.Watch().ok());
    absl::SleepFor(absl::Milliseconds(50));
    EXPECT_EQ(Lives(), lives) << "started before its pause of " << pause << " s was over";
    clock_.Advance(absl::Seconds(0.02));
    ASSERT_TRUE(workers.Watch().ok());
    AwaitLives(++lives);
  }
  clock_.Advance(absl::Seconds(60));  // a long life
  ASSERT_TRUE(Die(workers, 1).ok());
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(workers.Watch().ok());
  AwaitLives(++lives);
  EXPECT_EQ(workers.restarts(), 5);
  workers.Stop(absl::Seconds(1));
}

TEST_F(LocalWorkersTest, RestartsAreUsedUpAndTheLastWordsAreSaid) {
  LocalWorkers workers(Options(1), clock_);
  ASSERT_TRUE(workers.Start().ok());
  ASSERT_TRUE(Die(workers, 1).ok());
  clock_.Advance(absl::Seconds(5));
  ASSERT_TRUE(workers.Watch().ok());
  AwaitLives(2);
  const absl::Status status = Die(workers, 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("last words"));
}

TEST_F(LocalWorkersTest, AWorkerThatRefusesTheWorkIsNotStartedAgain) {
  LocalWorkers workers(Options(8), clock_);
  ASSERT_TRUE(workers.Start().ok());
  const absl::Status status = Die(workers, 3);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_EQ(status.message(), "last words");
  EXPECT_EQ(workers.restarts(), 0);
}

}  // namespace
}  // namespace iha::cli
