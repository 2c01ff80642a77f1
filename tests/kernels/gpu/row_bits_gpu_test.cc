// What `cuda-exact` promises: a row's bits do not depend on how many rows a call has, nor on which. Of every kernel: 64
// rows in one call, by 7, rows alone, and in chunks of unequal size. Attention over caches of several sequences:
// AttentionGpu.*, TalkingHeadsGpu.RowsDoNotSeeBatchOrChunk, and here decode of 64 sequences.
#include <functional>
#include <numeric>

#include "kernels/elementwise/elementwise_gpu.h"
#include "kernels/epilogue/epilogue_gpu.h"
#include "kernels/iha_collapse/iha_collapse_gpu.h"
#include "kernels/iha_mix_rope/iha_mix_rope_gpu.h"
#include "kernels/logits/sample_gpu.h"
#include "kernels/matmul/matmul_gpu.h"
#include "kernels/mlp/mlp_gpu.h"
#include "kernels/rmsnorm/rmsnorm_gpu.h"
#include "kernels/rope/rope.h"
#include "kernels/rope/rope_gpu.h"
#include "kernels/talking_heads/talking_heads_gpu.h"
#include "tests/kernels/gpu/paged_cache.h"

namespace iha::kernels {
namespace {

constexpr uint32_t kRows = 64;

// Results of rows first .. first + n - 1 when a call has only those.
template <class T>
using RunRows = std::function<std::vector<T>(uint32_t first, uint32_t n)>;
template <class T>
void ExpectRowBits(const char* kernel, const RunRows<T>& run) {
  SCOPED_TRACE(kernel);
  const std::vector<T> all = run(0, kRows);
  const size_t row = all.size() / kRows;
  const auto check = [&](uint32_t first, uint32_t n) {
    const auto begin = all.begin() + static_cast<ptrdiff_t>(first * row);
    EXPECT_EQ(run(first, n), std::vector<T>(begin, begin + static_cast<ptrdiff_t>(n * row)))
        << "rows " << first << " and " << n - 1 << " more";
  };
  for (const uint32_t alone : {0, 1, 15, 16, 40, 63}) check(alone, 1);
  for (uint32_t first = 0; first + 7 <= kRows; first += 7) check(first, 7);
  check(0, 33);
  check(33, 17);
  check(50, 14);
}

// Inputs and outputs of one call, by device pointers: what of `from` begins at row first and has n rows of `row`
// values.
class Call {
 public:
  template <class T>
  T* In(const std::vector<T>& from, uint32_t first, uint32_t n, size_t row) {
    const auto begin = from.begin() + static_cast<ptrdiff_t>(first * row);
    return Keep<T>(std::vector<T>(begin, begin + static_cast<ptrdiff_t>(n * row)));
  }
  template <class T>
  T* All(const std::vector<T>& from) {
    return Keep<T>(from);
  }
  uint16_t* Out(size_t n) {
    out_ = std::make_unique<simt::Buffer<uint16_t>>(device_, n, "out");
    return out_->data();
  }
  std::vector<uint16_t> Result(GpuStatus status) {
    EXPECT_EQ(status, 0) << device_.report().message;
    return out_->ToHost();
  }
  simt::Device& device() { return device_; }

 private:
  template <class T>
  T* Keep(const std::vector<T>& values) {
    const auto buffer = std::make_shared<simt::Buffer<T>>(device_, values, "input");
    kept_.push_back(buffer);
    return buffer->data();
  }
  simt::Device device_;
  std::vector<std::shared_ptr<void>> kept_;
  std::unique_ptr<simt::Buffer<uint16_t>> out_;
};

TEST(RowBitsGpu, Products) {
  const uint32_t n = 72, k = 136;
  const std::vector<uint16_t> x = RandomBF16(kRows * k, 1, 2).bits, w = RandomBF16(n * k, 2, 2).bits;
  ExpectRowBits<uint16_t>("matmul", [&](uint32_t first, uint32_t m) {
    Call call;
    return call.Result(MatmulGpu({.x = call.In(x, first, m, k),
                                  .w = call.All(w),
                                  .y = call.Out(size_t{m} * n),
                                  .m = m,
                                  .n = n,
                                  .k = k,
                                  .ldx = k,
                                  .ldw = k,
                                  .ldy = n},
                                 &call.device()));
  });
}

TEST(RowBitsGpu, NormsAndElements) {
  const uint32_t n = 1032;  // a block a row; 64: a warp a row
  const std::vector<uint16_t> x = RandomBF16(kRows * n, 1, 2).bits, w = RandomBF16(n, 2, 2).bits;
  for (const uint32_t width : {64u, n}) {
    ExpectRowBits<uint16_t>("rmsnorm", [&](uint32_t first, uint32_t rows) {
      Call call;
      return call.Result(RmsNormGpu({.x = call.In(x, first, rows, n),
                                     .weight = call.All(w),
                                     .y = call.Out(size_t{rows} * width),
                                     .rows = rows,
                                     .n = width,
                                     .ldx = n,
                                     .ldy = width,
                                     .eps = 1e-5f},
                                    &call.device()));
    });
  }
  ExpectRowBits<uint16_t>("activation", [&](uint32_t first, uint32_t rows) {
    Call call;
    return call.Result(ActivationMulGpu({.gate = call.In(x, first, rows, n),
                                         .up = call.In(x, first, rows, n),
                                         .out = call.Out(size_t{rows} * n),
                                         .rows = rows,
                                         .n = n,
                                         .ld_gate = n,
                                         .ld_up = n,
                                         .ld_out = n},
                                        &call.device()));
  });
  std::vector<int32_t> ids(kRows);
  for (uint32_t r = 0; r < kRows; ++r) ids[r] = static_cast<int32_t>(r * 29 % kRows);
  ExpectRowBits<uint16_t>("embedding", [&](uint32_t first, uint32_t rows) {
    Call call;
    return call.Result(EmbedGpu({.table = call.All(x),
                                 .ids = call.In(ids, first, rows, 1),
                                 .out = call.Out(size_t{rows} * n),
                                 .rows = rows,
                                 .n = n,
                                 .scale = 5.5f},
                                &call.device()));
  });
}

TEST(RowBitsGpu, MixAndCollapse) {
  const uint32_t heads = 4, pseudo = 3, d = 64, row = heads * d;
  const std::vector<uint16_t> x = RandomBF16(kRows * row, 1, 2).bits, norm = RandomBF16(d, 2, 2).bits,
                              a = RandomBF16(kRows * pseudo * row, 3, 2).bits,
                              v = RandomBF16(kRows * pseudo * row, 4, 2).bits;
  std::vector<double> frequency(d / 2);
  RopeFrequencies(10000, d, frequency.data());
  std::vector<float> cos(kRows * pseudo * d / 2), sin(cos.size());
  FillRopeTable(frequency.data(), d / 2, 0, kRows * pseudo, 1.0, cos.data(), sin.data());
  std::vector<uint32_t> positions(kRows);
  for (uint32_t t = 0; t < kRows; ++t) positions[t] = t * pseudo;
  const IhaMixGpuShape shape{kRows, heads, pseudo, d};
  const std::vector<float> alpha = RandomFloats(heads * heads * pseudo, 5);
  std::vector<uint16_t> packed(MixGpuAlphaLayoutFor(shape, 2).elements());
  MixGpuPackAlpha(shape, 2, alpha.data(), packed.data());
  for (const bool normed : {false, true}) {
    ExpectRowBits<uint16_t>("mix", [&](uint32_t first, uint32_t n) {
      Call call;
      IhaMixGpuArgs args{.shape = {n, heads, pseudo, d}, .terms = 2, .count = 1, .parts = {}};
      args.parts[0] = {.x = call.In(x, first, n, row),
                       .token_stride = row,
                       .rotate = 1,
                       .alpha = call.All(packed),
                       .y = call.Out(size_t{n} * pseudo * row),
                       .norm = normed ? call.All(norm) : nullptr};
      args.first_row = call.In(positions, first, n, 1);
      args.cos = args.shift_cos = call.All(cos);
      args.sin = args.shift_sin = call.All(sin);
      args.norm_eps = 1e-5f;
      return call.Result(IhaMixRopeGpu(args, &call.device()));
    });
  }
  const std::vector<float> collapse = RandomFloats(heads * heads * pseudo, 6);
  std::vector<uint16_t> global(CollapseGpuLayoutFor(heads, pseudo, 2).elements());
  CollapseGpuPack(heads, pseudo, 2, collapse.data(), global.data());
  for (const bool xsa : {false, true}) {
    ExpectRowBits<uint16_t>("collapse", [&](uint32_t first, uint32_t n) {
      Call call;
      return call.Result(IhaCollapseGpu({.a = call.In(a, first, n, pseudo * row),
                                         .v = xsa ? call.In(v, first, n, pseudo * row) : nullptr,
                                         .collapse = call.All(collapse),
                                         .out = call.Out(size_t{n} * row),
                                         .tokens = n,
                                         .heads = heads,
                                         .pseudo = pseudo,
                                         .d = d},
                                        &call.device()));
    });
    ExpectRowBits<uint16_t>("global collapse", [&](uint32_t first, uint32_t n) {
      Call call;
      return call.Result(IhaCollapseGlobalGpu({.a = call.In(a, first, n, pseudo * row),
                                               .collapse = call.All(global),
                                               .out = call.Out(size_t{n} * row),
                                               .terms = 2,
                                               .tokens = n,
                                               .heads = heads,
                                               .pseudo = pseudo,
                                               .d = d,
                                               .v = xsa ? call.In(v, first, n, pseudo * row) : nullptr},
                                              &call.device()));
    });
  }
}

TEST(RowBitsGpu, EpilogueAndRope) {
  const uint32_t heads = 6, d = 64, row = heads * d;
  const std::vector<uint16_t> a = RandomBF16(kRows * 2 * row, 1, 2).bits, v = RandomBF16(kRows * row, 2, 2).bits,
                              gate = RandomBF16(kRows * row, 3, 2).bits;
  const std::vector<float> logits = RandomFloats(kRows * heads, 4), weight = RandomFloats(d, 5);
  for (const EpilogueCombine combine :
       {EpilogueCombine::kNone, EpilogueCombine::kDiffGated, EpilogueCombine::kDiffNormed}) {
    ExpectRowBits<uint16_t>("epilogue", [&](uint32_t first, uint32_t n) {
      Call call;
      return call.Result(
          AttentionEpilogueGpu({.a = call.In(a, first, n, (combine == EpilogueCombine::kNone ? 1 : 2) * row),
                                .out = call.Out(size_t{n} * row),
                                .tokens = n,
                                .heads = heads,
                                .d = d,
                                .combine = combine,
                                .logits = call.In(logits, first, n, heads),
                                .weight = call.All(weight),
                                .lambda = 0.4f,
                                .eps = 1e-5f,
                                .v = call.In(v, first, n, row),
                                .v_stride = row,
                                .gate = call.In(gate, first, n, row),
                                .gate_elementwise = true},
                               &call.device()));
    });
  }
  std::vector<double> frequency(d / 2);
  RopeFrequencies(10000, d, frequency.data());
  std::vector<float> cos(kRows * d / 2), sin(cos.size());
  FillRopeTable(frequency.data(), d / 2, 0, kRows, 1.0, cos.data(), sin.data());
  std::vector<uint32_t> positions(kRows);
  std::iota(positions.rbegin(), positions.rend(), 0);
  ExpectRowBits<uint16_t>("rope", [&](uint32_t first, uint32_t n) {
    Call call;
    uint16_t* const x = call.Out(size_t{n} * row);
    std::copy_n(v.begin() + first * row, n * row, x);
    call.device().Find(x)->MarkWritten();
    return call.Result(RopeGpu({.x = x,
                                .positions = call.In(positions, first, n, 1),
                                .cos = call.All(cos),
                                .sin = call.All(sin),
                                .tokens = n,
                                .heads = heads,
                                .token_stride = row,
                                .head_stride = d,
                                .rotary_dim = d},
                               &call.device()));
  });
}

TEST(RowBitsGpu, Tokens) {
  const uint32_t n = 300;
  const std::vector<float> logits = RandomFloats(kRows * n, 1, 6);
  const std::vector<uint32_t> top_k(kRows, 40);
  const std::vector<double> top_p(kRows, 0.9);
  std::vector<double> uniform(kRows);
  for (uint32_t r = 0; r < kRows; ++r) uniform[r] = (r + 0.5) / kRows;
  for (const float degrees : {0.0f, 0.8f}) {
    const std::vector<float> temperature(kRows, degrees);
    ExpectRowBits<int32_t>(degrees == 0 ? "largest" : "sample", [&](uint32_t first, uint32_t rows) {
      Call call;
      simt::Buffer<int32_t> tokens(call.device(), rows, "tokens");
      const GpuStatus status = SampleGpu({.logits = call.In(logits, first, rows, n),
                                          .tokens = tokens.data(),
                                          .temperature = call.In(temperature, first, rows, 1),
                                          .top_k = call.In(top_k, first, rows, 1),
                                          .top_p = call.In(top_p, first, rows, 1),
                                          .uniform = call.In(uniform, first, rows, 1),
                                          .rows = rows,
                                          .n = n,
                                          .ld = n},
                                         &call.device());
      EXPECT_EQ(status, 0) << call.device().report().message;
      return tokens.ToHost();
    });
  }
}

// Decode: one row of each of 64 sequences that share a history's beginning, by batches of 64, 7 and 1; the last rows of
// IHA's tokens (P rows each), whole and in pieces.
TEST(RowBitsGpu, Decode) {
  const uint32_t heads = 2, d = 64;
  for (const uint32_t pseudo : {1u, 3u}) {
    const PagedInputs whole = MakePaged({d, d, heads, 1, {{kRows * pseudo + 60, kRows * pseudo + 60}}}, pseudo);
    for (const uint32_t split : {0u, 64u}) {
      ExpectRowBits<uint16_t>("attention", [&](uint32_t first, uint32_t n) {
        std::vector<Sequence> sequences;
        for (uint32_t i = first; i < first + n; ++i) sequences.push_back({pseudo, (i + 1) * pseudo + 60});
        const PagedInputs part = PartOf(whole, sequences);
        simt::Device device;
        PagedOnDevice cache(device, part);
        AttentionGpuArgs args = cache.Args();
        args.mask = {.pseudo = pseudo, .token_causal = pseudo == 3};
        args.split_keys = split;
        const size_t pieces = size_t{AttentionGpuPieces(args)} * part.rows * heads;
        simt::Buffer<float> split_out(device, pieces * d, "split_out"), split_sums(device, pieces * 2, "split_sums");
        args.split_out = split_out.data();
        args.split_sums = split_sums.data();
        EXPECT_EQ(AttentionGpu(args, &device), 0) << device.report().message;
        return cache.Out();
      });
    }
  }
  const PagedInputs whole = MakePaged({d, d, heads, 1, {{kRows + 60, kRows + 60}}}, 7);
  const std::vector<float> pre = RandomFloats(heads * heads, 8), post = RandomFloats(heads * heads, 9);
  ExpectRowBits<uint16_t>("talking heads", [&](uint32_t first, uint32_t n) {
    std::vector<Sequence> sequences;
    for (uint32_t i = first; i < first + n; ++i) sequences.push_back({1, i + 61});
    const PagedInputs part = PartOf(whole, sequences);
    Call call;
    PagedOnDevice cache(call.device(), part);
    TalkingHeadsGpuArgs args{.attention = cache.Args(), .pre = call.All(pre), .post = call.All(post), .block_rows = 16};
    simt::Buffer<float> scores(call.device(), TalkingHeadsGpuScratch(args), "scores");
    args.scores = scores.data();
    EXPECT_EQ(TalkingHeadsGpu(args, &call.device()), 0) << call.device().report().message;
    return cache.Out();
  });
}

}  // namespace
}  // namespace iha::kernels
