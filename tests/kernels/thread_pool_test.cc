#include "kernels/support/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

namespace iha::kernels {
namespace {

TEST(ThreadPool, EveryJobOnceWithItsOwnThreadNumber) {
  for (const int threads : {0, 1, 2, 4}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.Threads(), threads < 1 ? 1 : threads);
    std::vector<std::atomic<int>> busy(static_cast<size_t>(pool.Threads()));
    for (const size_t jobs : {0, 1, 2, 3, 100, 5000}) {
      std::vector<int> done(jobs, 0);  // plain ints: a job claimed twice is a race that TSan reports
      std::atomic<int> clashes{0};
      pool.Run(jobs, [&](size_t job, int thread) {
        if (busy[static_cast<size_t>(thread)].exchange(1) != 0) clashes.fetch_add(1);
        ++done[job];
        busy[static_cast<size_t>(thread)].store(0);
      });
      for (size_t j = 0; j < jobs; ++j) ASSERT_EQ(done[j], 1) << j << " of " << jobs << " with " << threads;
      EXPECT_EQ(clashes.load(), 0);
    }
  }
}

// Many short runs whose data are plain variables of the caller: what a job wrote must be visible after Run, and a
// worker that wakes late must not touch the next run.
TEST(ThreadPool, ManyShortRuns) {
  ThreadPool pool(4);
  size_t total = 0, want = 0;
  for (size_t run = 0; run < 20000; ++run) {
    const size_t jobs = run % 7;
    size_t results[7] = {};
    pool.Run(jobs, [&](size_t job, int) { results[job] = job + run; });
    for (size_t j = 0; j < jobs; ++j) {
      total += results[j];
      want += j + run;
    }
  }
  EXPECT_EQ(total, want);
}

// Each thread reserves address space for its stack: a limit on that is one on their number.
TEST(ThreadPoolDeathTest, FewerThreadsWhereTheSystemMakesNoMore) {
  const auto limited = [] {
    const rlimit space = {.rlim_cur = size_t{1} << 30, .rlim_max = size_t{1} << 30};
    if (setrlimit(RLIMIT_AS, &space) != 0) std::_Exit(1);
    ThreadPool pool(100'000);
    std::atomic<size_t> sum{0};
    pool.Run(1000, [&](size_t job, int) { sum.fetch_add(job, std::memory_order_relaxed); });
    std::_Exit(sum.load() == 499500u && pool.Threads() < 100'000 ? 0 : 2);
  };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve more address space than the limit leaves";
#endif
  EXPECT_EXIT(limited(), ::testing::ExitedWithCode(0), "");
}

TEST(ThreadPool, SleepingWorkersWakeUp) {
  ThreadPool pool({3, true});
  for (int round = 0; round < 5; ++round) {
    // Long enough a pause that workers go to sleep: their spin is about 50 us, and nothing here depends on them.
    for (int i = 0; i < 2000; ++i) std::this_thread::yield();
    std::atomic<size_t> sum{0};
    pool.Run(1000, [&](size_t job, int) { sum.fetch_add(job, std::memory_order_relaxed); });
    EXPECT_EQ(sum.load(), 499500u);
  }
}

TEST(ThreadPool, MoreJobsThanOneWordHolds) {
  ThreadPool pool(2);
  const size_t jobs = (size_t{1} << 21) + 5;
  std::vector<uint8_t> done(jobs, 0);
  pool.Run(jobs, [&](size_t job, int) { ++done[job]; });
  size_t once = 0;
  for (const uint8_t d : done) once += d == 1;
  EXPECT_EQ(once, jobs);
}

// Whoever runs the job that fails: the caller gets the exception, no job runs on, and the pool is as good as before.
TEST(ThreadPool, AJobsExceptionReachesTheCaller) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (size_t bad = 0; bad < 200; bad += 7) {
      std::atomic<int> running{0};
      EXPECT_THROW(pool.Run(200,
                            [&](size_t job, int) {
                              running.fetch_add(1);
                              if (job == 10) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                              running.fetch_sub(1);
                              if (job == bad) throw std::bad_alloc();
                            }),
                   std::bad_alloc);
      EXPECT_EQ(running.load(), 0);
      std::atomic<int> done{0};
      pool.Run(50, [&](size_t, int) { done.fetch_add(1); });
      EXPECT_EQ(done.load(), 50);
    }
  }
}

TEST(SerialFor, JobsInOrder) {
  SerialFor serial;
  std::vector<size_t> seen;
  serial.Run(3, [&](size_t job, int thread) {
    EXPECT_EQ(thread, 0);
    seen.push_back(job);
  });
  EXPECT_EQ(seen, (std::vector<size_t>{0, 1, 2}));
}

}  // namespace
}  // namespace iha::kernels
