// thread_pool.h: persistent threads behind ParallelFor.
//
// Run blocks; the caller works as thread 0. Jobs are claimed one by one with a compare-and-swap on a word that also
// holds the run's generation, so a worker that wakes late finds nothing to claim and Run waits for claimed jobs only: a
// loaded machine slows a run down by at most one job. Idle workers spin for about 50 us, then sleep. Threads: one
// caller of Run at a time; a job must not call Run. Destroy it from outside Run.
#pragma once

#include <cstddef>
#include <memory>

#include "kernels/support/parallel_for.h"

namespace iha::kernels {

class ThreadPool final : public ParallelFor {
 public:
  struct Options {
    int threads = 1;   // the caller included; values below 1 mean 1. Fewer where the system refuses to make more
    bool pin = false;  // worker i to the i-th CPU this process may use; the calling thread is left alone
  };
  explicit ThreadPool(Options options);
  explicit ThreadPool(int threads) : ThreadPool(Options{threads, false}) {}
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int Threads() const override;
  void Run(size_t jobs, FunctionRef<void(size_t job, int thread)> f) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace iha::kernels
