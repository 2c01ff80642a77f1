#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/peak/peak.cc"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "kernels/peak/peak.h"
#include "kernels/support/aligned.h"

HWY_BEFORE_NAMESPACE();
namespace iha::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;

// 12 independent chains: more than latency times throughput of any core we know (4 to 5 cycles, two units).
double FmaLoop(size_t iterations) {
  const D d;
  const auto a = hn::Set(d, 0.9999999f), b = hn::Set(d, 1e-7f);
  auto c0 = hn::Iota(d, 1), c1 = c0, c2 = c0, c3 = c0, c4 = c0, c5 = c0, c6 = c0, c7 = c0, c8 = c0, c9 = c0, c10 = c0,
       c11 = c0;
  for (size_t i = 0; i < iterations; ++i) {
    c0 = hn::MulAdd(a, c0, b);
    c1 = hn::MulAdd(a, c1, b);
    c2 = hn::MulAdd(a, c2, b);
    c3 = hn::MulAdd(a, c3, b);
    c4 = hn::MulAdd(a, c4, b);
    c5 = hn::MulAdd(a, c5, b);
    c6 = hn::MulAdd(a, c6, b);
    c7 = hn::MulAdd(a, c7, b);
    c8 = hn::MulAdd(a, c8, b);
    c9 = hn::MulAdd(a, c9, b);
    c10 = hn::MulAdd(a, c10, b);
    c11 = hn::MulAdd(a, c11, b);
    // Without this the twelve equal chains would be computed once.
    asm volatile("" : "+m"(i));
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
    asm volatile("" : "+v"(c0.raw), "+v"(c1.raw), "+v"(c2.raw), "+v"(c3.raw), "+v"(c4.raw), "+v"(c5.raw));
    asm volatile("" : "+v"(c6.raw), "+v"(c7.raw), "+v"(c8.raw), "+v"(c9.raw), "+v"(c10.raw), "+v"(c11.raw));
#endif
  }
  const auto sum =
      hn::Add(hn::Add(hn::Add(c0, c1), hn::Add(c2, c3)),
              hn::Add(hn::Add(hn::Add(c4, c5), hn::Add(c6, c7)), hn::Add(hn::Add(c8, c9), hn::Add(c10, c11))));
  return hn::GetLane(sum);
}

double FlopsPerIteration() { return 12.0 * 2.0 * static_cast<double>(hn::Lanes(D())); }

double ReadSum(const float* p, size_t n) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for (size_t i = 0; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 = hn::Add(s0, hn::LoadU(d, p + i));
    s1 = hn::Add(s1, hn::LoadU(d, p + i + lanes));
    s2 = hn::Add(s2, hn::LoadU(d, p + i + 2 * lanes));
    s3 = hn::Add(s3, hn::LoadU(d, p + i + 3 * lanes));
  }
  return hn::GetLane(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
}

}  // namespace iha::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace iha::kernels {
HWY_EXPORT(FmaLoop);
HWY_EXPORT(FlopsPerIteration);
HWY_EXPORT(ReadSum);
namespace {

double Seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// The slowest of `threads` threads that start together.
double TimeTogether(int threads, const std::function<double(int)>& f) {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::vector<double> taken(static_cast<size_t>(threads)), sink(static_cast<size_t>(threads));
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] {
      ready.fetch_add(1);
      while (!go.load()) {
      }
      const double start = Seconds();
      sink[static_cast<size_t>(i)] = f(i);
      taken[static_cast<size_t>(i)] = Seconds() - start;
    });
  }
  while (ready.load() < threads) {
  }
  go.store(true);
  for (std::thread& worker : workers) worker.join();
  return *std::max_element(taken.begin(), taken.end());
}

// The shortest of the runs that fit into `seconds`, at least three of them.
double Best(double seconds, const std::function<double()>& run) {
  constexpr int kLeast = 3;
  const double end = Seconds() + seconds;
  double best = run();
  for (int i = 1; i < kLeast || Seconds() < end; ++i) best = std::min(best, run());
  return best;
}

}  // namespace

double FmaPeakGflops(int threads, double seconds) {
  const auto loop = HWY_DYNAMIC_DISPATCH(FmaLoop);
  constexpr size_t kIterations = 200000;  // short and many: other jobs may share the cores
  const double best = Best(seconds, [&] { return TimeTogether(threads, [&](int) { return loop(kIterations); }); });
  return threads * static_cast<double>(kIterations) * HWY_DYNAMIC_DISPATCH(FlopsPerIteration)() / best * 1e-9;
}

double ReadBandwidthGBs(int threads, size_t bytes, double seconds) {
  const auto read = HWY_DYNAMIC_DISPATCH(ReadSum);
  const size_t floats = bytes / sizeof(float), part = floats / static_cast<size_t>(threads);
  const auto data = MakeAligned<float>(floats);  // huge pages where the system gives them, as weights
  std::fill_n(data.get(), floats, 1.0f);
  const double best = Best(seconds, [&] {
    return TimeTogether(threads, [&](int i) { return read(data.get() + part * static_cast<size_t>(i), part); });
  });
  return static_cast<double>(part * static_cast<size_t>(threads) * sizeof(float)) / best * 1e-9;
}

}  // namespace iha::kernels
#endif
