// Gemm against the machine's own fma peak (measured first, in this process): GFLOP/s and the share of the peak; and
// against LibTorch's at::linear (names with "torch/" in front).
// bench_matmul [google-benchmark flags]; names are matmul/TYPE/KxN/M/threads.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "bench/torch_rival.h"
#include "kernels/matmul/matmul.h"
#include "kernels/peak/peak.h"
#include "kernels/support/simd_target.h"
#include "kernels/support/thread_pool.h"

namespace {

using iha::kernels::PackedWeights;
using iha::kernels::WeightForm;

std::map<int, double> peaks;

std::vector<float> Random(size_t n, uint32_t seed) {
  std::mt19937 bits(seed);
  std::vector<float> values(n);
  for (float& x : values) x = static_cast<float>(bits()) * 0x1p-31f - 1.0f;
  return values;
}

const PackedWeights& Weights(WeightForm form, size_t n, size_t k) {
  static std::map<std::pair<WeightForm, std::pair<size_t, size_t>>, PackedWeights> cache;
  PackedWeights& w = cache[{form, {n, k}}];
  if (w.n() == 0) {
    w = PackedWeights(form, n, k);
    std::vector<float> values = Random(n * k, 1);
    if (form == WeightForm::kAffine) {
      for (float& x : values) x = std::round(x * 15) * 0.0625f - 0.25f;
      if (!w.PackAffineRows(0, values.data(), n, k)) std::abort();
    } else if (form == WeightForm::kF32) {
      w.PackRows(0, values.data(), n, k);
    } else {
      // Random patterns with |w| < 2, in either 16-bit format.
      std::vector<uint16_t> bits(values.size());
      for (size_t i = 0; i < bits.size(); ++i) bits[i] = iha::kernels::RoundToBF16(values[i]);
      w.PackRows(0, bits.data(), n, k);
    }
  }
  return w;
}

// Root mean square of the error of one chain against double, relative to the rms of the results.
double ChainError(size_t k) {
  const size_t n = 256, m = 16;
  const PackedWeights& w = Weights(WeightForm::kF32, n, k);
  const std::vector<float> a = Random(m * k, 2);
  std::vector<float> c(m * n);
  std::vector<double> exact(m * n);
  iha::kernels::SerialFor serial;
  iha::kernels::Gemm(a.data(), k, m, w, c.data(), n, serial);
  iha::kernels::GemmRef(a.data(), k, m, w, exact.data(), n);
  double error = 0, size = 0;
  for (size_t i = 0; i < c.size(); ++i) {
    error += (c[i] - exact[i]) * (c[i] - exact[i]);
    size += exact[i] * exact[i];
  }
  return std::sqrt(error / size);
}

void Rate(benchmark::State& state, size_t k, size_t n, size_t m, int threads, double weight_bytes) {
  const double flops = 2.0 * static_cast<double>(m * n * k);
  state.counters["GFLOPS"] = benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["of_peak"] =
      benchmark::Counter(flops * 1e-9 / peaks[threads], benchmark::Counter::kIsIterationInvariantRate);
  state.counters["weights_GBs"] =
      benchmark::Counter(weight_bytes * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

void TorchMatmul(benchmark::State& state, bool bf16, size_t k, size_t n, size_t m, int threads) {
  const auto run = iha::bench::TorchLinear(bf16, k, n, m, threads);
  for (auto _ : state) run();
  Rate(state, k, n, m, threads, static_cast<double>(k * n * (bf16 ? 2 : 4)));
}

void Matmul(benchmark::State& state, WeightForm form, size_t k, size_t n, size_t m, int threads) {
  const PackedWeights& w = Weights(form, n, k);
  const std::vector<float> a = Random(m * k, 2);
  std::vector<float> c(m * n);
  iha::kernels::ThreadPool pool({threads, threads > 1});
  for (auto _ : state) {
    iha::kernels::Gemm(a.data(), k, m, w, c.data(), n, pool);
    benchmark::ClobberMemory();
  }
  Rate(state, k, n, m, threads, static_cast<double>(w.bytes()));
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const int threads : {1, 2}) {
    peaks[threads] = iha::kernels::FmaPeakGflops(threads, 0.3);
    std::printf("%d thread(s): fma peak %.1f GFLOP/s, read bandwidth %.1f GB/s over 128 MiB, target %s\n", threads,
                peaks[threads], iha::kernels::ReadBandwidthGBs(threads, size_t{128} << 20, 0.5),
                iha::kernels::CurrentSimdTarget().name.c_str());
  }
  std::printf("rival: %s\n", iha::bench::TorchVersion().c_str());
  for (const size_t k : {576, 2048, 8192}) {
    std::printf("K = %zu: relative rms error of one chain %.2g\n", k, ChainError(k));
  }
  const std::pair<WeightForm, const char*> forms[] = {{WeightForm::kF32, "f32"},
                                                      {WeightForm::kBF16, "bf16"},
                                                      {WeightForm::kF16, "f16"},
                                                      {WeightForm::kAffine, "affine"}};
  for (const auto& [form, form_name] : forms) {
    for (const auto& [k, n] : {std::pair<size_t, size_t>{576, 1536}, {1536, 576}, {2048, 2048}, {576, 49152}}) {
      for (const size_t m : {1, 4, 5, 6, 16, 64, 256}) {
        for (const int threads : {1, 2}) {
          const std::string name = std::string("matmul/") + form_name + "/" + std::to_string(k) + "x" +
                                   std::to_string(n) + "/M" + std::to_string(m) + "/threads" + std::to_string(threads);
          // One thread is timed by its CPU clock: other jobs may share the cores.
          const auto add = [&](const std::string& full, auto body) {
            auto* registered = benchmark::RegisterBenchmark(full.c_str(), body);
            registered->Unit(benchmark::kMicrosecond);
            if (threads > 1) registered->UseRealTime();
          };
          add(name, [=](benchmark::State& state) { Matmul(state, form, k, n, m, threads); });
          const bool bf16 = form == WeightForm::kBF16;
          if ((!bf16 && form != WeightForm::kF32) || iha::bench::TorchVersion().empty()) continue;
          add("torch/" + name, [=](benchmark::State& state) { TorchMatmul(state, bf16, k, n, m, threads); });
        }
      }
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
