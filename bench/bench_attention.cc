// Attention against the machine's fma peak: prefill of a whole sequence, decode of one query, and of four heads that
// share a KV head; beside LibTorch's scaled_dot_product_attention ("torch/" in front). GFLOP/s count 2 (d + d_v) per
// visible key. bench_attention [google-benchmark flags].
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "bench/torch_rival.h"
#include "kernels/attention/attention.h"
#include "kernels/peak/peak.h"
#include "kernels/support/aligned.h"
#include "kernels/support/simd_target.h"
#include "kernels/support/thread_pool.h"

namespace {

using iha::kernels::AttentionGroup;
using iha::kernels::AttentionRow;
using iha::kernels::kKeyBlock;
using iha::kernels::KvLayout;
using iha::kernels::StorageType;

std::map<int, double> peaks;

std::vector<float> Random(size_t n, uint32_t seed) {
  std::mt19937 bits(seed);
  std::vector<float> values(n);
  for (float& x : values) x = static_cast<float>(bits()) * 0x1p-31f - 1.0f;
  return values;
}

enum class Kind { kPrefill, kDecode1, kDecode4 };

void Rate(benchmark::State& state, size_t d, double visible, int threads) {
  const double gflop = 4e-9 * static_cast<double>(d) * visible;
  state.counters["GFLOPS"] = benchmark::Counter(gflop, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["of_peak"] = benchmark::Counter(gflop / peaks[threads], benchmark::Counter::kIsIterationInvariantRate);
}

void TorchAttend(benchmark::State& state, bool bf16, size_t d, size_t tokens, Kind kind, int threads) {
  const size_t heads = kind == Kind::kDecode4 ? 4 : 1;
  const bool prefill = kind == Kind::kPrefill;
  const auto run = iha::bench::TorchAttention(bf16, d, tokens, heads, prefill, threads);
  for (auto _ : state) run();
  const double all = static_cast<double>(tokens);
  Rate(state, d, prefill ? all * (all + 1) / 2 : all * static_cast<double>(heads), threads);
}

void Attend(benchmark::State& state, StorageType type, size_t d, size_t tokens, Kind kind, int threads) {
  const KvLayout layout{type, d, d};
  const std::vector<float> q = Random(tokens * d, 1), k = Random(tokens * d, 2), v = Random(tokens * d, 3);
  std::vector<float> out(tokens * d);
  const size_t blocks = (tokens + kKeyBlock - 1) / kKeyBlock;
  auto memory = iha::kernels::MakeAligned<char>(blocks * layout.bytes());
  std::vector<const void*> table;
  for (size_t b = 0; b < blocks; ++b) table.push_back(memory.get() + b * layout.bytes());
  for (size_t t = 0; t < tokens; ++t) {
    AppendKv(layout, memory.get() + t / kKeyBlock * layout.bytes(), t % kKeyBlock, &k[t * d], &v[t * d]);
  }
  std::vector<AttentionRow> rows;
  double visible = 0;
  const size_t count = kind == Kind::kPrefill ? tokens : kind == Kind::kDecode1 ? 1 : 4;
  for (size_t r = 0; r < count; ++r) {
    const auto last = static_cast<uint32_t>(kind == Kind::kPrefill ? r : tokens - 1);
    rows.push_back({&q[r * d], &out[r * d], 0, last});
    visible += last + 1;
  }
  const AttentionGroup group{table.data(), 0, rows};
  iha::kernels::ThreadPool pool({threads, threads > 1});
  const float scale = 1.0f / std::sqrt(static_cast<float>(d));
  for (auto _ : state) {
    Attention(layout, scale, {&group, 1}, pool);
    benchmark::ClobberMemory();
  }
  Rate(state, d, visible, threads);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const int threads : {1, 2}) {
    peaks[threads] = iha::kernels::FmaPeakGflops(threads, 0.3);
    std::printf("%d thread(s): fma peak %.1f GFLOP/s, target %s\n", threads, peaks[threads],
                iha::kernels::CurrentSimdTarget().name.c_str());
  }
  std::printf("rival: %s\n", iha::bench::TorchVersion().c_str());
  const std::pair<Kind, const char*> kinds[] = {
      {Kind::kPrefill, "prefill"}, {Kind::kDecode1, "decode1"}, {Kind::kDecode4, "decode4"}};
  for (const StorageType type : {StorageType::kF32, StorageType::kBF16}) {
    for (const size_t d : {64, 128}) {
      for (const size_t tokens : {1024, 4096}) {
        for (const auto& [kind, kind_name] : kinds) {
          for (const int threads : {1, 2}) {
            if (kind != Kind::kPrefill && threads != 1) continue;  // one row tile is one job
            const std::string name = std::string("attention/") + (type == StorageType::kF32 ? "f32" : "bf16") + "/d" +
                                     std::to_string(d) + "/T" + std::to_string(tokens) + "/" + kind_name + "/threads" +
                                     std::to_string(threads);
            // One thread is timed by its CPU clock: other jobs may share the cores.
            const auto add = [&](const std::string& full, auto body) {
              auto* registered = benchmark::RegisterBenchmark(full.c_str(), body);
              registered->Unit(benchmark::kMicrosecond);
              if (threads > 1) registered->UseRealTime();
            };
            add(name, [=, kind = kind](benchmark::State& state) { Attend(state, type, d, tokens, kind, threads); });
            if (iha::bench::TorchVersion().empty()) continue;
            const bool bf16 = type == StorageType::kBF16;
            add("torch/" + name,
                [=, kind = kind](benchmark::State& state) { TorchAttend(state, bf16, d, tokens, kind, threads); });
          }
        }
      }
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
