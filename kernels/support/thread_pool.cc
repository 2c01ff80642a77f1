#include "kernels/support/thread_pool.h"

#include <hwy/cache_control.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace iha::kernels {
namespace {

constexpr int kWorkerSpins = 4000;   // about 50 us before a worker sleeps
constexpr int kCallerSpins = 20000;  // before the caller yields to claimed jobs still running

void PinTo(int index) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || index-- != 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);  // a hint: refused in some containers, then the scheduler decides
    return;
  }
}

}  // namespace

// The word: generation (24 bits) | number of jobs (20) | next job (20). A claim is a CAS on the whole word, so it can
// only take a job of the run whose function it will read: Run does not return (and cannot change f) before that job is
// counted in `done`.
struct ThreadPool::State {
  static constexpr int kJobBits = 20;
  static constexpr uint64_t kJobMask = (uint64_t{1} << kJobBits) - 1;

  std::vector<std::thread> threads;
  std::mutex mu;
  std::condition_variable wake;
  std::atomic<uint64_t> word{0};
  std::atomic<uint64_t> done{0};
  std::atomic<int> asleep{0};
  std::atomic<bool> stop{false};
  // Written by Run before the word is published, read after a claim.
  const FunctionRef<void(size_t, int)>* f = nullptr;
  size_t base = 0;
  std::exception_ptr error;  // the first that a job of this run threw

  static bool Open(uint64_t w) { return (w & kJobMask) < ((w >> kJobBits) & kJobMask); }

  void Call(size_t job, int thread) {
    try {
      (*f)(job, thread);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mu);
      if (error == nullptr) error = std::current_exception();
    }
  }

  void Work(int thread) {
    uint64_t w = word.load(std::memory_order_acquire);
    while (Open(w)) {
      if (!word.compare_exchange_weak(w, w + 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      Call(base + (w & kJobMask), thread);
      done.fetch_add(1, std::memory_order_release);
      w = word.load(std::memory_order_acquire);
    }
  }

  void Loop(int thread) {
    for (int spin = 0; !stop.load(std::memory_order_acquire);) {
      if (Open(word.load(std::memory_order_acquire))) {
        Work(thread);
        spin = 0;
      } else if (++spin < kWorkerSpins) {
        hwy::Pause();
      } else {
        std::unique_lock<std::mutex> lock(mu);
        asleep.fetch_add(1, std::memory_order_seq_cst);
        wake.wait(lock, [&] { return stop.load() || Open(word.load(std::memory_order_seq_cst)); });
        asleep.fetch_sub(1, std::memory_order_seq_cst);
        spin = 0;
      }
    }
  }

  void RunChunk(size_t first, size_t jobs, const FunctionRef<void(size_t, int)>& function) {
    f = &function;
    base = first;
    done.store(0, std::memory_order_relaxed);
    const uint64_t generation = (word.load(std::memory_order_relaxed) >> (2 * kJobBits)) + 1;
    word.store(generation << (2 * kJobBits) | uint64_t{jobs} << kJobBits, std::memory_order_seq_cst);
    if (asleep.load(std::memory_order_seq_cst) != 0) {
      // Taking the lock orders this after a sleeper's check, so the wake-up cannot be lost.
      { std::lock_guard<std::mutex> lock(mu); }
      wake.notify_all();
    }
    Work(0);
    for (int spin = 0; done.load(std::memory_order_acquire) != jobs;) {
      if (++spin < kCallerSpins) {
        hwy::Pause();
      } else {
        std::this_thread::yield();
      }
    }
    if (error != nullptr) std::rethrow_exception(std::exchange(error, nullptr));
  }
};

ThreadPool::ThreadPool(Options options) : state_(std::make_unique<State>()) {
  state_->threads.reserve(static_cast<size_t>(std::max(options.threads, 1)));
  for (int i = 1; i < options.threads; ++i) {
    try {
      state_->threads.emplace_back([state = state_.get(), i, pin = options.pin] {
        if (pin) PinTo(i);
        state->Loop(i);
      });
    } catch (const std::system_error&) {
      return;  // the system allows no more
    }
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(state_->mu);
    state_->stop.store(true, std::memory_order_release);
  }
  state_->wake.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

int ThreadPool::Threads() const { return static_cast<int>(state_->threads.size()) + 1; }

void ThreadPool::Run(size_t jobs, FunctionRef<void(size_t job, int thread)> f) {
  if (state_->threads.empty() || jobs <= 1) {
    for (size_t job = 0; job < jobs; ++job) f(job, 0);
    return;
  }
  for (size_t first = 0; first < jobs; first += State::kJobMask) {
    state_->RunChunk(first, std::min<size_t>(jobs - first, State::kJobMask), f);
  }
}

}  // namespace iha::kernels
