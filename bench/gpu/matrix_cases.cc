#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "bench/gpu/kernel_cases.h"
#include "kernels/attention/attention_gpu.h"
#include "kernels/matmul/matmul_gpu.h"
#include "kernels/peak/mma_peak_gpu.h"
#include "kernels/talking_heads/talking_heads_gpu.h"

namespace iha::model {
namespace {

using kernels::AttentionGpuArgs;
using kernels::GpuStream;

absl::Status Peak(DeviceRuntime& runtime, const KernelSizes& s, const KernelCaseSink& sink) {
  const uint32_t blocks = s.peak_rounds < 16 ? 1 : 132 * 8;
  IHA_ASSIGN_OR_RETURN(const auto out,
                       DeviceArray<float>::Make(runtime, size_t{blocks} * kernels::kMmaPeakGpuThreads, "sums"));
  const kernels::MmaPeakGpuArgs args{out.data(), blocks, s.peak_rounds};
  return sink({"mma.sync from registers", 0, 2.0 * static_cast<double>(kernels::MmaPeakGpuMultiplyAdds(args)),
               [&](GpuStream stream) { return kernels::MmaPeakGpu(args, stream); }});
}

absl::Status Products(DeviceRuntime& runtime, const KernelSizes& s, const KernelCaseSink& sink) {
  const uint32_t n = s.square;
  IHA_ASSIGN_OR_RETURN(const auto x, SomeRows(runtime, size_t{n} * n, "x"));
  IHA_ASSIGN_OR_RETURN(const auto w, SomeRows(runtime, size_t{n} * n, "w"));
  IHA_ASSIGN_OR_RETURN(const auto y, DeviceRows::Make(runtime, size_t{n} * n, "y"));
  for (const uint32_t m : {n, s.few, 1u}) {
    const double bytes = 2.0 * n * n + 4.0 * m * n;
    IHA_RETURN_IF_ERROR(
        sink({fmt::format("MatmulGpu {} x {} x {}", m, n, n), bytes, 2.0 * m * n * n, [&](GpuStream stream) {
                return kernels::MatmulGpu(
                    {.x = x.data(), .w = w.data(), .y = y.data(), .m = m, .n = n, .k = n, .ldx = n, .ldw = n, .ldy = n},
                    stream);
              }}));
  }
  return absl::OkStatus();
}

// Sequences of `keys` keys whose last `rows` attend; a cache of their own each.
struct Attended {
  DeviceRows q, k_pages, v_pages, out;
  DeviceArray<int32_t> table;
  DeviceArray<uint32_t> q_begin, kv_length;
  AttentionGpuArgs args;
};
absl::StatusOr<Attended> MakeAttended(DeviceRuntime& runtime, uint32_t heads, uint32_t d, uint32_t d_v,
                                      uint32_t sequences, uint32_t rows, uint32_t keys) {
  const uint32_t pages = (keys + 63) / 64;
  const size_t elements = size_t{sequences} * pages * 64 * heads * d;  // of values as many
  std::vector<int32_t> numbers(size_t{sequences} * pages);
  std::iota(numbers.rbegin(), numbers.rend(), 0);
  Attended a;
  IHA_ASSIGN_OR_RETURN(a.q, SomeRows(runtime, size_t{sequences} * rows * heads * d, "q"));
  IHA_ASSIGN_OR_RETURN(a.k_pages, SomeRows(runtime, elements, "k_pages"));
  IHA_ASSIGN_OR_RETURN(a.v_pages, SomeRows(runtime, elements, "v_pages"));
  IHA_ASSIGN_OR_RETURN(a.out, DeviceRows::Make(runtime, size_t{sequences} * rows * heads * d_v, "out"));
  IHA_ASSIGN_OR_RETURN(a.table, DeviceArray<int32_t>::Copy(runtime, numbers, "page_table"));
  IHA_ASSIGN_OR_RETURN(a.q_begin, Counting(runtime, sequences + 1, rows));
  IHA_ASSIGN_OR_RETURN(a.kv_length,
                       DeviceArray<uint32_t>::Copy(runtime, std::vector<uint32_t>(sequences, keys), "kv_length"));
  a.args = {.q = a.q.data(),
            .k_pages = a.k_pages.data(),
            .v_pages = a.v_pages.data(),
            .page_table = a.table.data(),
            .q_begin = a.q_begin.data(),
            .kv_length = a.kv_length.data(),
            .out = a.out.data(),
            .sequences = sequences,
            .max_rows = rows,
            .pages_per_sequence = pages,
            .heads = heads,
            .kv_heads = heads,
            .d = d,
            .d_v = d_v,
            .scale = 1.0f / std::sqrt(static_cast<float>(d)),
            .max_keys = keys,
            .rows = sequences * rows};
  return a;
}
// Pairs of rows and keys that see each other, of one head.
double Pairs(const AttentionGpuArgs& a, uint32_t keys) {
  double pairs = 0;
  for (uint32_t row = 0; row < a.max_rows; row++) {
    const kernels::VisibleKeys v = kernels::VisibleTo(a.mask, keys - a.max_rows + row);
    pairs += std::min(v.last, keys - 1) - v.first + 1;
  }
  return pairs * a.sequences;
}

absl::Status Prefill(DeviceRuntime& runtime, const KernelSizes& s, const KernelCaseSink& sink) {
  struct Shape {
    uint32_t d, d_v, pseudo, window;  // the latter in tokens
  };
  for (const Shape& shape : {Shape{s.d, s.d, 1, 0},
                             {64, 64, 1, 0},
                             {64, 128, 1, 0},
                             {s.d, 2 * s.d, 1, 0},
                             {s.d, s.d, 2, s.prompt / 8},
                             {s.d, s.d, 4, s.prompt / 32}}) {
    const uint32_t keys = s.prompt;  // virtual tokens, P a token
    IHA_ASSIGN_OR_RETURN(Attended a, MakeAttended(runtime, s.heads, shape.d, shape.d_v, 1, keys, keys));
    a.args.mask = {.pseudo = shape.pseudo, .token_window = shape.pseudo > 1, .window = shape.window};
    const double bytes = 2.0 * keys * s.heads * (2 * shape.d + 2 * shape.d_v);
    const double flops = 2.0 * s.heads * Pairs(a.args, keys) * (shape.d + shape.d_v);
    IHA_RETURN_IF_ERROR(
        sink({fmt::format("AttentionGpu causal {} keys, d {}/{}{}", keys, shape.d, shape.d_v,
                          shape.pseudo == 1 ? "" : fmt::format(", P {}, window {}", shape.pseudo, shape.window)),
              bytes, flops, [&](GpuStream stream) { return kernels::AttentionGpu(a.args, stream); }}));
  }
  IHA_ASSIGN_OR_RETURN(Attended a, MakeAttended(runtime, s.heads, s.d, s.d, 1, s.prompt / 4, s.prompt / 4));
  const size_t mixes = size_t{s.heads} * s.heads;
  IHA_ASSIGN_OR_RETURN(const auto mix, DeviceArray<float>::Copy(runtime, std::vector<float>(mixes, 0.1f), "mix"));
  kernels::TalkingHeadsGpuArgs talking{.attention = a.args, .pre = mix.data(), .post = mix.data()};
  talking.block_rows = kernels::TalkingHeadsGpuRowsFor(a.args, size_t{256} << 20);
  IHA_ASSIGN_OR_RETURN(const auto scores,
                       DeviceArray<float>::Make(runtime, kernels::TalkingHeadsGpuScratch(talking), "scores"));
  talking.scores = scores.data();
  return sink({fmt::format("TalkingHeadsGpu causal {} keys, d {}", s.prompt / 4, s.d), 0,
               4.0 * s.heads * Pairs(a.args, s.prompt / 4) * s.d,
               [&](GpuStream stream) { return kernels::TalkingHeadsGpu(talking, stream); }});
}

// A step of `batch` sequences, whole and in pieces: bound by the bytes of the cache.
absl::Status Decode(DeviceRuntime& runtime, const KernelSizes& s, const KernelCaseSink& sink) {
  for (const auto& [batch, pseudo] : {std::pair{1u, 1u}, {s.batch, 1u}, {s.batch / 2, 4u}, {1u, 20u}}) {
    const uint32_t keys = s.keys * (pseudo == 20 ? 4 : 1) / pseudo * pseudo;
    IHA_ASSIGN_OR_RETURN(Attended a, MakeAttended(runtime, s.heads, s.d, s.d, batch, pseudo, keys));
    a.args.mask.pseudo = pseudo;
    const double bytes = 4.0 * batch * keys * s.heads * s.d;
    const std::string name = fmt::format("AttentionGpu decode {} x {} keys, P {}", batch, keys, pseudo);
    IHA_RETURN_IF_ERROR(
        sink({name, bytes, 0, [&](GpuStream stream) { return kernels::AttentionGpu(a.args, stream); }}));
    a.args.split_keys = kernels::AttentionGpuSplitFor(batch * s.heads, pseudo, keys, 132);
    if (a.args.split_keys == 0) continue;
    const size_t pieces = size_t{kernels::AttentionGpuPieces(a.args)} * a.args.rows * s.heads;
    IHA_ASSIGN_OR_RETURN(const auto out, DeviceArray<float>::Make(runtime, pieces * s.d, "pieces"));
    IHA_ASSIGN_OR_RETURN(const auto sums, DeviceArray<float>::Make(runtime, pieces * 2, "sums"));
    a.args.split_out = out.data();
    a.args.split_sums = sums.data();
    IHA_RETURN_IF_ERROR(sink({name + fmt::format(" in pieces of {}", a.args.split_keys), bytes, 0,
                              [&](GpuStream stream) { return kernels::AttentionGpu(a.args, stream); }}));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ForEachMatrixCase(DeviceRuntime& runtime, const KernelSizes& sizes, const KernelCaseSink& sink) {
  IHA_RETURN_IF_ERROR(Peak(runtime, sizes, sink));
  IHA_RETURN_IF_ERROR(Products(runtime, sizes, sink));
  IHA_RETURN_IF_ERROR(Prefill(runtime, sizes, sink));
  return Decode(runtime, sizes, sink);
}

}  // namespace iha::model
