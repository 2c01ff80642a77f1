#include <fmt/format.h>

#include <numeric>

#include "bench/gpu/kernel_cases.h"
#include "kernels/attention/kv_pages_gpu.h"
#include "kernels/elementwise/elementwise_gpu.h"
#include "kernels/epilogue/epilogue_gpu.h"
#include "kernels/iha_collapse/iha_collapse_gpu.h"
#include "kernels/iha_mix_rope/iha_mix_rope_gpu.h"
#include "kernels/logits/sample_gpu.h"
#include "kernels/mlp/mlp_gpu.h"
#include "kernels/rmsnorm/rmsnorm_gpu.h"
#include "kernels/rope/rope_gpu.h"

namespace iha::model {
namespace {

using kernels::GpuStream;

absl::Status Rows(DeviceRuntime& runtime, const KernelSizes& s, const KernelCaseSink& sink) {
  const uint32_t n = s.tokens, width = s.hidden;
  const double row_bytes = 2.0 * n * width;
  IHA_ASSIGN_OR_RETURN(const auto x, SomeRows(runtime, size_t{n} * width, "x"));
  IHA_ASSIGN_OR_RETURN(const auto y, SomeRows(runtime, size_t{n} * width, "y"));
  IHA_ASSIGN_OR_RETURN(const auto weight, SomeRows(runtime, width, "weight"));
  IHA_ASSIGN_OR_RETURN(
      const auto ids, DeviceArray<int32_t>::Copy(runtime, std::vector<int32_t>(n, static_cast<int32_t>(n / 2)), "ids"));
  IHA_RETURN_IF_ERROR(sink({fmt::format("RmsNormGpu {} x {}", n, width), 2 * row_bytes, 0, [&](GpuStream stream) {
                              return kernels::RmsNormGpu({.x = x.data(),
                                                          .weight = weight.data(),
                                                          .y = y.data(),
                                                          .rows = n,
                                                          .n = width,
                                                          .ldx = width,
                                                          .ldy = width,
                                                          .eps = 1e-5f},
                                                         stream);
                            }}));
  IHA_RETURN_IF_ERROR(sink({fmt::format("AddInPlaceGpu {} x {}", n, width), 3 * row_bytes, 0, [&](GpuStream stream) {
                              return kernels::AddInPlaceGpu({y.data(), x.data(), n, width, width, width}, stream);
                            }}));
  // All rows of one id: the write, and a read from the second-level cache.
  IHA_RETURN_IF_ERROR(sink({fmt::format("EmbedGpu {} x {}", n, width), row_bytes, 0, [&](GpuStream stream) {
                              return kernels::EmbedGpu({x.data(), ids.data(), y.data(), n, width}, stream);
                            }}));
  IHA_ASSIGN_OR_RETURN(const auto gate, SomeRows(runtime, size_t{n} * s.inner, "gate"));
  IHA_ASSIGN_OR_RETURN(const auto up, SomeRows(runtime, size_t{n} * s.inner, "up"));
  return sink({fmt::format("ActivationMulGpu {} x {}", n, s.inner), 6.0 * n * s.inner, 0, [&](GpuStream stream) {
                 return kernels::ActivationMulGpu({.gate = gate.data(),
                                                   .up = up.data(),
                                                   .out = gate.data(),
                                                   .rows = n,
                                                   .n = s.inner,
                                                   .ld_gate = s.inner,
                                                   .ld_up = s.inner,
                                                   .ld_out = s.inner},
                                                  stream);
               }});
}

absl::Status Heads(DeviceRuntime& runtime, const KernelSizes& s, const KernelCaseSink& sink) {
  const uint32_t n = s.tokens, row = s.heads * s.d;
  const double bytes = 2.0 * n * row;
  IHA_ASSIGN_OR_RETURN(const auto x, SomeRows(runtime, size_t{n} * row, "x"));
  IHA_ASSIGN_OR_RETURN(const auto v, SomeRows(runtime, size_t{n} * row, "v"));
  IHA_ASSIGN_OR_RETURN(const auto pairs, SomeRows(runtime, size_t{n} * 2 * row, "pairs"));
  IHA_ASSIGN_OR_RETURN(const auto out, DeviceRows::Make(runtime, size_t{n} * row, "out"));
  IHA_ASSIGN_OR_RETURN(const auto angles, AnglesOf(runtime, n, s.d));
  IHA_ASSIGN_OR_RETURN(const auto positions, Counting(runtime, n));
  IHA_ASSIGN_OR_RETURN(const auto weight, DeviceArray<float>::Copy(runtime, std::vector<float>(s.d, 1.0f), "weight"));
  const std::string shape = fmt::format("{} x {} x {}", n, s.heads, s.d);
  IHA_RETURN_IF_ERROR(sink({"RopeGpu " + shape, 2 * bytes, 0, [&](GpuStream stream) {
                              return kernels::RopeGpu({.x = x.data(),
                                                       .positions = positions.data(),
                                                       .cos = angles.cos.data(),
                                                       .sin = angles.sin.data(),
                                                       .tokens = n,
                                                       .heads = s.heads,
                                                       .token_stride = row,
                                                       .head_stride = s.d,
                                                       .rotary_dim = s.d},
                                                      stream);
                            }}));
  kernels::EpilogueGpuArgs args{.a = x.data(),
                                .out = out.data(),
                                .tokens = n,
                                .heads = s.heads,
                                .d = s.d,
                                .v = v.data(),
                                .v_stride = row,
                                .gate = x.data(),
                                .gate_elementwise = true};
  IHA_RETURN_IF_ERROR(sink({"AttentionEpilogueGpu xsa, gate " + shape, 4 * bytes, 0,
                            [&](GpuStream stream) { return kernels::AttentionEpilogueGpu(args, stream); }}));
  args = {.a = pairs.data(), .out = out.data(), .tokens = n, .heads = s.heads, .d = s.d};
  args.combine = kernels::EpilogueCombine::kDiffNormed;
  args.weight = weight.data();
  args.eps = 1e-5f;
  return sink({"AttentionEpilogueGpu diff " + shape, 3 * bytes, 0,
               [&](GpuStream stream) { return kernels::AttentionEpilogueGpu(args, stream); }});
}

absl::Status Pages(DeviceRuntime& runtime, const KernelSizes& s, const KernelCaseSink& sink) {
  const uint32_t n = s.tokens, row = s.heads * s.d, pages = (n + 63) / 64;
  IHA_ASSIGN_OR_RETURN(const auto k, SomeRows(runtime, size_t{n} * row, "k"));
  IHA_ASSIGN_OR_RETURN(const auto k_pages, SomeRows(runtime, size_t{2} * pages * 64 * row, "k_pages"));
  IHA_ASSIGN_OR_RETURN(const auto v_pages, SomeRows(runtime, size_t{2} * pages * 64 * row, "v_pages"));
  std::vector<int32_t> numbers(pages), pairs;
  std::iota(numbers.begin(), numbers.end(), 0);
  for (const int32_t page : numbers) pairs.insert(pairs.end(), {page, page + static_cast<int32_t>(pages)});
  IHA_ASSIGN_OR_RETURN(const auto table, DeviceArray<int32_t>::Copy(runtime, numbers, "page_table"));
  IHA_ASSIGN_OR_RETURN(const auto copies, DeviceArray<int32_t>::Copy(runtime, pairs, "pairs"));
  IHA_ASSIGN_OR_RETURN(const auto sequence,
                       DeviceArray<uint32_t>::Copy(runtime, std::vector<uint32_t>(n, 0), "sequence"));
  IHA_ASSIGN_OR_RETURN(const auto positions, Counting(runtime, n));
  const kernels::KvPagesGpu cache{k_pages.data(), v_pages.data(), s.heads, s.d, s.d};
  IHA_RETURN_IF_ERROR(sink({fmt::format("KvAppendGpu {} x {}", n, row), 8.0 * n * row, 0, [&](GpuStream stream) {
                              return kernels::KvAppendGpu({.pages = cache,
                                                           .k = k.data(),
                                                           .v = k.data(),
                                                           .row_sequence = sequence.data(),
                                                           .positions = positions.data(),
                                                           .page_table = table.data(),
                                                           .pages_per_sequence = pages,
                                                           .rows = n},
                                                          stream);
                            }}));
  return sink(
      {fmt::format("KvCopyGpu {} pages of 64 x {}", pages, row), 8.0 * pages * 64 * row, 0, [&](GpuStream stream) {
         return kernels::KvCopyGpu({.pages = cache, .pairs = copies.data(), .count = pages}, stream);
       }});
}

// The pair around attention of an iha layer: mix of q, k, v, then collapse. Fewer tokens of more pseudo heads.
absl::Status Mixes(DeviceRuntime& runtime, const KernelSizes& s, uint32_t pseudo, const KernelCaseSink& sink) {
  const uint32_t n = std::max(1u, s.tokens * 2 / pseudo), row = s.heads * s.d;
  const kernels::IhaMixGpuShape shape{n, s.heads, pseudo, s.d};
  IHA_ASSIGN_OR_RETURN(const auto x, SomeRows(runtime, size_t{n} * row, "x"));
  IHA_ASSIGN_OR_RETURN(const auto alpha,
                       SomeRows(runtime, kernels::MixGpuAlphaLayoutFor(shape, 1).elements(), "alpha"));
  std::vector<DeviceRows> mixed(3);
  for (DeviceRows& y : mixed) {
    IHA_ASSIGN_OR_RETURN(y, DeviceRows::Make(runtime, size_t{n} * pseudo * row, "pseudo heads"));
  }
  IHA_ASSIGN_OR_RETURN(const auto out, DeviceRows::Make(runtime, size_t{n} * row, "collapsed"));
  IHA_ASSIGN_OR_RETURN(const auto angles, AnglesOf(runtime, n * pseudo, s.d));
  IHA_ASSIGN_OR_RETURN(const auto first_row, Counting(runtime, n, pseudo));
  IHA_ASSIGN_OR_RETURN(const auto norm, SomeRows(runtime, s.d, "norm"));
  const kernels::CollapseGpuLayout layout = kernels::CollapseGpuLayoutFor(s.heads, pseudo, 1);
  IHA_ASSIGN_OR_RETURN(const auto global, SomeRows(runtime, layout.elements(), "collapse"));
  IHA_ASSIGN_OR_RETURN(const auto per_head,
                       DeviceArray<float>::Copy(runtime, std::vector<float>(s.heads * pseudo, 1.0f), "collapse"));
  const std::string name = fmt::format("P {} {} x {} x {}", pseudo, n, s.heads, s.d);
  const double token_bytes = 2.0 * n * row, pseudo_bytes = token_bytes * pseudo;
  for (const bool normed : {false, true}) {
    kernels::IhaMixGpuArgs args{.shape = shape, .terms = 1, .count = 3, .parts = {}};
    for (uint32_t i = 0; i < 3; i++) {
      args.parts[i] = {x.data(), row, i < 2, alpha.data(), mixed[i].data(), normed && i < 2 ? norm.data() : nullptr};
    }
    args.first_row = first_row.data();
    args.cos = args.shift_cos = angles.cos.data();
    args.sin = args.shift_sin = angles.sin.data();
    args.norm_eps = 1e-5f;
    IHA_RETURN_IF_ERROR(
        sink({fmt::format("IhaMixRopeGpu {}{}", normed ? "normed " : "", name), 3 * (token_bytes + pseudo_bytes), 0,
              [&](GpuStream stream) { return kernels::IhaMixRopeGpu(args, stream); }}));
  }
  for (const bool xsa : {false, true}) {
    const double bytes = (xsa ? 2 : 1) * pseudo_bytes + token_bytes;
    const uint16_t* const v = xsa ? mixed[2].data() : nullptr;
    IHA_RETURN_IF_ERROR(
        sink({fmt::format("IhaCollapseGpu {}{}", xsa ? "xsa " : "", name), bytes, 0, [&](GpuStream stream) {
                return kernels::IhaCollapseGpu(
                    {mixed[0].data(), v, per_head.data(), out.data(), n, s.heads, pseudo, s.d}, stream);
              }}));
    IHA_RETURN_IF_ERROR(
        sink({fmt::format("IhaCollapseGlobalGpu {}{}", xsa ? "xsa " : "", name), bytes, 0, [&](GpuStream stream) {
                return kernels::IhaCollapseGlobalGpu({.a = mixed[0].data(),
                                                      .collapse = global.data(),
                                                      .out = out.data(),
                                                      .terms = 1,
                                                      .tokens = n,
                                                      .heads = s.heads,
                                                      .pseudo = pseudo,
                                                      .d = s.d,
                                                      .v = v},
                                                     stream);
              }}));
  }
  return absl::OkStatus();
}

absl::Status Tokens(DeviceRuntime& runtime, const KernelSizes& s, const KernelCaseSink& sink) {
  const uint32_t rows = s.batch, n = s.vocabulary;
  std::vector<float> values(size_t{rows} * n);
  for (size_t i = 0; i < values.size(); i++) values[i] = static_cast<float>(i * 7919 % 4096) * 0x1p-9f;
  IHA_ASSIGN_OR_RETURN(const auto logits, DeviceArray<float>::Copy(runtime, values, "logits"));
  IHA_ASSIGN_OR_RETURN(const auto tokens, DeviceArray<int32_t>::Make(runtime, rows, "tokens"));
  IHA_ASSIGN_OR_RETURN(const auto temperature,
                       DeviceArray<float>::Copy(runtime, std::vector<float>(rows, 0.6f), "temperature"));
  IHA_ASSIGN_OR_RETURN(const auto uniform,
                       DeviceArray<double>::Copy(runtime, std::vector<double>(rows, 0.5), "uniform"));
  for (const uint32_t top_k : {0u, 40u}) {
    IHA_ASSIGN_OR_RETURN(const auto ks,
                         DeviceArray<uint32_t>::Copy(runtime, std::vector<uint32_t>(rows, top_k), "top_k"));
    IHA_ASSIGN_OR_RETURN(
        const auto ps, DeviceArray<double>::Copy(runtime, std::vector<double>(rows, top_k == 0 ? 1.0 : 0.95), "top_p"));
    IHA_RETURN_IF_ERROR(sink({fmt::format("SampleGpu {}{} x {}", top_k == 0 ? "" : "top 40, 0.95 ", rows, n),
                              4.0 * rows * n, 0, [&](GpuStream stream) {
                                return kernels::SampleGpu({.logits = logits.data(),
                                                           .tokens = tokens.data(),
                                                           .temperature = temperature.data(),
                                                           .top_k = ks.data(),
                                                           .top_p = ps.data(),
                                                           .uniform = uniform.data(),
                                                           .rows = rows,
                                                           .n = n,
                                                           .ld = n},
                                                          stream);
                              }}));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DeviceRows> SomeRows(DeviceRuntime& runtime, size_t n, const char* name) {
  std::vector<uint16_t> values(n);
  for (size_t i = 0; i < n; i++) {
    // Any sign, exponents of 2^-4 .. 2^-1, any mantissa.
    const auto bits = static_cast<uint32_t>(i % 4096 * 2654435761u);
    values[i] = static_cast<uint16_t>((bits >> 16 & 0x807Fu) | (123 + (bits >> 24 & 3)) << 7);
  }
  return DeviceRows::Copy(runtime, values, name);
}

absl::StatusOr<SomeAngles> AnglesOf(DeviceRuntime& runtime, uint32_t rows, uint32_t d) {
  const std::vector<float> half(size_t{rows} * (d / 2), 0.70710678f);
  SomeAngles angles;
  IHA_ASSIGN_OR_RETURN(angles.cos, DeviceArray<float>::Copy(runtime, half, "cos"));
  IHA_ASSIGN_OR_RETURN(angles.sin, DeviceArray<float>::Copy(runtime, half, "sin"));
  return angles;
}

absl::StatusOr<DeviceArray<uint32_t>> Counting(DeviceRuntime& runtime, uint32_t n, uint32_t step) {
  std::vector<uint32_t> values(n);
  for (uint32_t i = 0; i < n; i++) values[i] = i * step;
  return DeviceArray<uint32_t>::Copy(runtime, values, "numbers");
}

absl::Status ForEachMemoryCase(DeviceRuntime& runtime, const KernelSizes& sizes, const KernelCaseSink& sink) {
  IHA_RETURN_IF_ERROR(Rows(runtime, sizes, sink));
  IHA_RETURN_IF_ERROR(Heads(runtime, sizes, sink));
  IHA_RETURN_IF_ERROR(Pages(runtime, sizes, sink));
  for (const uint32_t pseudo : {2u, 4u, 20u}) IHA_RETURN_IF_ERROR(Mixes(runtime, sizes, pseudo, sink));
  return Tokens(runtime, sizes, sink);
}

}  // namespace iha::model
