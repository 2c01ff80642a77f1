// One IHA layer's own work against the machine's fma peak: mixing new keys and values into the cache, collapse, and a
// decode step or a 64-token chunk of attention over T cached tokens, from mixed and from base keys (which are mixed
// again block by block). GFLOP/s count 2 H per mixed number, 4 d per visible virtual key, 2 per collapsed product; base
// rows count the attention only, so mixed / base is the price of the smaller cache. bench_iha [google-benchmark flags].
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/iha_collapse/iha_collapse.h"
#include "kernels/iha_mix_rope/iha_mix_rope.h"
#include "kernels/peak/peak.h"
#include "kernels/support/aligned.h"
#include "kernels/support/simd_target.h"

namespace {

using namespace iha::kernels;  // NOLINT(google-build-using-namespace): a program of its own

double peak = 0;

std::vector<float> Random(size_t n, uint32_t seed) {
  std::mt19937 bits(seed);
  std::vector<float> values(n);
  for (float& x : values) x = static_cast<float>(bits()) * 0x1p-31f - 1.0f;
  return values;
}

void Report(benchmark::State& state, double flop) {
  state.counters["GFLOPS"] = benchmark::Counter(flop * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["of_peak"] = benchmark::Counter(flop * 1e-9 / peak, benchmark::Counter::kIsIterationInvariantRate);
}

// Keys and values of `tokens` tokens of a layer, in both forms of cache.
struct Layer {
  Layer(const IhaShape& s, StorageType type, size_t n)
      : shape(s), layout{type, s.d, s.d}, tokens(n), width(s.heads * s.d), blocks((n + kKeyBlock - 1) / kKeyBlock) {
    alpha = Random(s.heads * s.heads * s.pseudo, 1);
    cos.assign(s.pseudo * s.d / 2, 0.8f);
    sin.assign(s.pseudo * s.d / 2, 0.6f);
    base_bytes = kKeyBlock * width * StorageBytes(type);
    mixed_bytes = s.heads * s.pseudo * layout.bytes();
    base = MakeAligned<uint8_t>(blocks * 2 * base_bytes);
    const std::vector<float> rows = Random(kKeyBlock * 2 * width, 2);
    for (size_t b = 0; b < blocks; ++b) {
      for (size_t t = 0; t < 2 * kKeyBlock; ++t) {
        IhaStoreBase(s, &rows[t * width], s.d, type, base.get() + b * 2 * base_bytes + t * width * StorageBytes(type));
      }
    }
  }
  IhaMix Keys(const void* x) const {
    return {.alpha = alpha.data(),
            .source = {x, layout.type, width, shape.d},
            .round = layout.type,
            .cos = cos.data(),
            .sin = sin.data()};
  }
  IhaMix Values(const void* x) const {
    IhaMix mix = Keys(x);
    mix.cos = mix.sin = nullptr;
    return mix;
  }
  void MixBlock(size_t b, size_t count, uint8_t* to) const {
    const uint8_t* from = base.get() + b * 2 * base_bytes;
    std::vector<uint8_t*> slices(count, to);
    std::vector<uint32_t> positions;
    for (uint32_t t = 0; t < count; ++t) positions.push_back(t);
    SerialFor serial;
    IhaMixToCache(shape, Keys(from), Values(from + base_bytes), layout, count, slices.data(), positions.data(), serial);
  }

  IhaShape shape;
  KvLayout layout;
  size_t tokens, width, blocks, base_bytes = 0, mixed_bytes = 0;
  std::vector<float> alpha, cos, sin;
  AlignedArray<uint8_t> base;
};

class Maker final : public KeyBlockMaker {
 public:
  Maker(const Layer& layer, size_t head) : layer_(layer), head_(head) {}
  void Make(size_t b, size_t slots, void* block) const override {
    const size_t pseudo = layer_.shape.pseudo;
    const uint8_t* from = layer_.base.get() + b / pseudo * 2 * layer_.base_bytes;
    IhaMixBlock(layer_.shape, layer_.Keys(from), layer_.Values(from + layer_.base_bytes), layer_.layout, head_,
                b % pseudo, slots, block);
  }

 private:
  const Layer& layer_;
  size_t head_;
};

void MixTokens(benchmark::State& state, const IhaShape& shape, StorageType type, size_t tokens) {
  const Layer layer(shape, type, kKeyBlock);
  auto slice = MakeAligned<uint8_t>(layer.mixed_bytes);
  for (auto _ : state) {
    layer.MixBlock(0, tokens, slice.get());
    benchmark::ClobberMemory();
  }
  const double rows = static_cast<double>(shape.heads * shape.pseudo * tokens * 2);
  Report(state, rows * static_cast<double>(2 * shape.heads * shape.d));
}

void Collapse(benchmark::State& state, const IhaShape& shape, bool global) {
  const size_t tokens = 64, rows = shape.heads * shape.pseudo;
  const std::vector<float> a = Random(tokens * rows * shape.d, 1), r = Random(shape.heads * rows, 2);
  std::vector<float> out(tokens * shape.heads * shape.d);
  SerialFor serial;
  for (auto _ : state) {
    IhaCollapse({tokens, shape.heads, shape.pseudo, shape.d, global}, r.data(), a.data(), nullptr, out.data(), serial);
    benchmark::ClobberMemory();
  }
  Report(state, static_cast<double>(2 * tokens * rows * shape.d * (global ? shape.heads : 1)));
}

void Attend(benchmark::State& state, const IhaShape& shape, StorageType type, size_t cached, size_t queries,
            bool mixed) {
  const Layer layer(shape, type, cached);
  const size_t pseudo = shape.pseudo, d = shape.d;
  AlignedArray<uint8_t> cache;
  if (mixed) {
    cache = MakeAligned<uint8_t>(layer.blocks * layer.mixed_bytes);
    for (size_t b = 0; b < layer.blocks; ++b) layer.MixBlock(b, kKeyBlock, cache.get() + b * layer.mixed_bytes);
  }
  std::vector<const void*> table;
  for (size_t b = 0; mixed && b < layer.blocks * pseudo; ++b) {
    table.push_back(cache.get() + b / pseudo * layer.mixed_bytes + b % pseudo * layer.layout.bytes());
  }
  const std::vector<float> q = Random(queries * shape.heads * pseudo * d, 3);
  std::vector<float> out(q.size());
  std::vector<AttentionRow> rows(queries * shape.heads * pseudo);
  std::vector<Maker> makers;
  std::vector<AttentionGroup> groups;
  makers.reserve(shape.heads);
  double visible = 0;
  size_t next = 0;
  for (size_t h = 0; h < shape.heads; ++h) {
    const size_t first = next;
    for (size_t v = 0; v < queries * pseudo; ++v, ++next) {
      const auto last = static_cast<uint32_t>((cached - queries) * pseudo + v);
      rows[next] = {&q[next * d], &out[next * d], 0, last};
      visible += last + 1;
    }
    makers.emplace_back(layer, h);
    groups.push_back({table.data(), h * pseudo * layer.layout.bytes(), std::span(rows).subspan(first, next - first),
                      mixed ? nullptr : &makers.back()});
  }
  SerialFor serial;
  for (auto _ : state) {
    Attention(layer.layout, 1.0f / std::sqrt(static_cast<float>(d)), groups, serial);
    benchmark::ClobberMemory();
  }
  Report(state, 4.0 * static_cast<double>(d) * visible);
}

template <class F>
void Register(const std::string& name, const F& f) {
  benchmark::RegisterBenchmark(name.c_str(), f)->Unit(benchmark::kMicrosecond);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  peak = iha::kernels::FmaPeakGflops(1, 0.3);
  std::printf("one thread: fma peak %.1f GFLOP/s, target %s\n", peak, CurrentSimdTarget().name.c_str());
  for (const IhaShape& shape : {IhaShape{9, 2, 64}, {20, 2, 128}, {20, 4, 128}, {20, 20, 128}}) {
    const std::string shape_name =
        "H" + std::to_string(shape.heads) + "/P" + std::to_string(shape.pseudo) + "/d" + std::to_string(shape.d);
    for (const bool global : {false, true}) {
      Register("collapse/" + std::string(global ? "global/" : "per_head/") + shape_name,
               [=](benchmark::State& state) { Collapse(state, shape, global); });
    }
    for (const StorageType type : {StorageType::kF32, StorageType::kBF16}) {
      const std::string prefix = (type == StorageType::kF32 ? "f32/" : "bf16/") + shape_name;
      for (const size_t tokens : {1, 64}) {
        Register("mix/" + prefix + "/M" + std::to_string(tokens),
                 [=](benchmark::State& state) { MixTokens(state, shape, type, tokens); });
      }
      if (shape.pseudo == 20 && type == StorageType::kF32) continue;  // a mixed cache of 20 x 84 MB
      for (const size_t queries : {1, 64}) {
        for (const bool mixed : {true, false}) {
          Register("attention/" + prefix + "/T1024/q" + std::to_string(queries) + (mixed ? "/mixed" : "/base"),
                   [=](benchmark::State& state) { Attend(state, shape, type, 1024, queries, mixed); });
        }
      }
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
