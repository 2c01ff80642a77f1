#include "model/device/device_attention.h"

#include <algorithm>

#include "common/status_macros.h"
#include "kernels/attention/attention_gpu.h"
#include "kernels/epilogue/epilogue_gpu.h"
#include "kernels/iha_collapse/iha_collapse_gpu.h"
#include "kernels/iha_mix_rope/iha_mix_rope_gpu.h"
#include "kernels/rmsnorm/rmsnorm_gpu.h"
#include "kernels/rope/rope_gpu.h"
#include "kernels/talking_heads/talking_heads_gpu.h"
#include "model/checkpoint/cost.h"
#include "model/device/device_fast.h"

namespace iha::model {
namespace {

// Of the scores of talking heads, where 64 rows need no more: as much as fits of a step at a time.
constexpr size_t kTalkingScratchBytes = size_t{256} << 20;

}  // namespace

using checkpoint::AttentionKind;
using checkpoint::CollapseKind;
using checkpoint::Gate;
using checkpoint::Knocking;
using checkpoint::QkNorm;
using checkpoint::Xsa;

uint32_t DeviceAttention::LastRopeRow(uint32_t position) const {
  return virtual_rope() ? position * pseudo_ : position;  // pseudo heads turn on from their token's row
}

DeviceCache::LayerShape DeviceAttention::cache_shape() const {
  return {.pseudo = pseudo_, .d_v = d_v_, .window = checkpoint::WindowTokens(spec_)};
}

absl::Status DeviceAttention::Forward(DeviceRuntime& runtime, DeviceProfile& profile, DeviceStep& step,
                                      const DeviceRopes& ropes, const DeviceCache::Layer& cache, const uint16_t* x,
                                      uint16_t* out) const {
  const uint32_t tokens = step.tokens();
  const bool iha = spec_.kind == AttentionKind::kIha;
  IHA_ASSIGN_OR_RETURN(Heads base,
                       profile.Time(Op::kQkv, ProjectWork(tokens), [&] { return Project(runtime, tokens, x); }));
  IHA_ASSIGN_OR_RETURN(const DevicePlaces* const places, step.PlacesOf(pseudo_, cache.group));
  IHA_ASSIGN_OR_RETURN(const Heads mixed, profile.Time(Op::kPositions, MixWork(tokens), [&] {
    return Place(runtime, step, ropes, *places, cache.pages, base);
  }));
  const Heads& heads = iha ? mixed : base;
  IHA_ASSIGN_OR_RETURN(DeviceRows y, profile.Time(Op::kAttention, profile.on() ? AttendWork(step) : OpWork(),
                                                  [&] { return Attend(runtime, *places, cache.pages, heads); }));
  if (iha) {
    IHA_ASSIGN_OR_RETURN(
        y, profile.Time(Op::kCombine, CollapseWork(tokens), [&] { return Collapse(runtime, tokens, y, heads.v); }));
  }
  return profile.Time(Op::kAttentionOutput, OutputWork(tokens), [&]() -> absl::Status {
    IHA_ASSIGN_OR_RETURN(y, Finish(runtime, tokens, x, base.v, std::move(y)));
    return ApplyLinear(runtime, o_, y.data(), tokens, out);
  });
}

OpWork DeviceAttention::ProjectWork(uint32_t tokens) const {
  OpWork work = WorkOf(q_, tokens);
  work += WorkOf(k_, tokens);
  work += WorkOf(v_, tokens);
  if (spec_.knocking != Knocking::kMlp) return work;
  for (const DeviceLinear* linear : {&knock_up_, &knock_gate_, &knock_down_}) {
    work += WorkOf(*linear, tokens * value_heads_);
  }
  return work;
}

OpWork DeviceAttention::OutputWork(uint32_t tokens) const {
  OpWork work = WorkOf(o_, tokens);
  if (spec_.kind == AttentionKind::kDiffV2) work += WorkOf(lambda_proj_, tokens);
  if (spec_.gate != Gate::kOff) work += WorkOf(gate_, tokens);
  return work;
}

// Each target and pseudo head of q, k and v from every source.
OpWork DeviceAttention::MixWork(uint32_t tokens) const {
  if (spec_.kind != AttentionKind::kIha) return {};
  return {.flops = 3 * 2.0 * tokens * heads_ * heads_ * pseudo_ * d_};
}
OpWork DeviceAttention::CollapseWork(uint32_t tokens) const {
  const uint32_t sources = spec_.collapse == CollapseKind::kPerHead ? 1 : heads_;
  return {.flops = 2.0 * tokens * heads_ * sources * pseudo_ * d_};
}

OpWork DeviceAttention::AttendWork(const DeviceStep& step) const {
  const kernels::AttentionGpuMask mask = Mask();
  double pairs = 0, keys = 0;
  for (const Segment& segment : step.segments()) {
    const auto begin = static_cast<uint32_t>(segment.start) * pseudo_;
    const uint32_t end = begin + static_cast<uint32_t>(segment.tokens.size()) * pseudo_;
    for (uint32_t row = begin; row < end; row++) {
      const kernels::VisibleKeys seen = kernels::VisibleTo(mask, row);
      pairs += static_cast<double>(seen.last - seen.first) + 1;
    }
    keys += end - kernels::VisibleTo(mask, begin).first;
  }
  const double bytes = 2.0 * (kv_heads_ * d_ + kernels::GpuValueHeads(kv_heads_, d_, d_v_) * d_v_);
  return {.flops = 2 * pairs * heads_ * (d_ + d_v_), .bytes = keys * bytes};
}

kernels::AttentionGpuMask DeviceAttention::Mask() const {
  const int64_t window = spec_.window.has_value() ? std::min<int64_t>(spec_.window->size, UINT32_MAX) : 0;
  return {
      .pseudo = pseudo_,
      .token_causal = spec_.mask == checkpoint::IhaMask::kTokenCausal,
      .token_window = pseudo_ > 1 && spec_.window.has_value() && spec_.window->unit == checkpoint::WindowUnit::kToken,
      .window = static_cast<uint32_t>(window)};
}

absl::StatusOr<DeviceAttention::Heads> DeviceAttention::Project(DeviceRuntime& runtime, uint32_t tokens,
                                                                const uint16_t* x) const {
  Heads heads;
  IHA_ASSIGN_OR_RETURN(heads.q, DeviceRows::Make(runtime, size_t{tokens} * q_.n, "q"));
  IHA_ASSIGN_OR_RETURN(heads.k, DeviceRows::Make(runtime, size_t{tokens} * k_.n, "k"));
  IHA_ASSIGN_OR_RETURN(heads.v, DeviceRows::Make(runtime, size_t{tokens} * v_.n, "v"));
  IHA_RETURN_IF_ERROR(ApplyLinear(runtime, q_, x, tokens, heads.q.data()));
  IHA_RETURN_IF_ERROR(ApplyLinear(runtime, k_, x, tokens, heads.k.data()));
  IHA_RETURN_IF_ERROR(ApplyLinear(runtime, v_, x, tokens, heads.v.data()));
  if (spec_.knocking == Knocking::kMlp) IHA_RETURN_IF_ERROR(KnockValues(runtime, tokens, heads.v));
  return heads;
}

// v' = ((v U) sigmoid(v G)) (2 W), a row a head.
absl::Status DeviceAttention::KnockValues(DeviceRuntime& runtime, uint32_t tokens, DeviceRows& v) const {
  const uint32_t rows = tokens * value_heads_;
  IHA_ASSIGN_OR_RETURN(const DeviceRows up, DeviceRows::Make(runtime, v.size(), "knocking up"));
  IHA_ASSIGN_OR_RETURN(const DeviceRows gate, DeviceRows::Make(runtime, v.size(), "knocking gate"));
  IHA_RETURN_IF_ERROR(ApplyLinear(runtime, knock_up_, v.data(), rows, up.data()));
  IHA_RETURN_IF_ERROR(ApplyLinear(runtime, knock_gate_, v.data(), rows, gate.data()));
  IHA_RETURN_IF_ERROR(runtime.Check(kernels::AttentionEpilogueGpu({.a = up.data(),
                                                                   .out = up.data(),
                                                                   .tokens = tokens,
                                                                   .heads = value_heads_,
                                                                   .d = d_v_,
                                                                   .gate = gate.data(),
                                                                   .gate_elementwise = true},
                                                                  runtime.stream()),
                                    "knocking"));
  return ApplyLinear(runtime, knock_down_, up.data(), rows, v.data());
}

absl::Status DeviceAttention::NormHeads(DeviceRuntime& runtime, uint32_t rows, const Heads& heads) const {
  const auto norm = [&](const DeviceRows& x, uint32_t count, const DeviceRows& weight) {
    return runtime.Check(kernels::RmsNormGpu({.x = x.data(),
                                              .weight = weight.data(),
                                              .y = x.data(),
                                              .rows = rows * count,
                                              .n = d_,
                                              .ldx = d_,
                                              .ldy = d_,
                                              .eps = norm_eps_,
                                              .weight_plus_one = norm_plus_one_,
                                              .mean_of = true_d_},
                                             runtime.stream()),
                         "qk norm");
  };
  IHA_RETURN_IF_ERROR(norm(heads.q, heads_, q_norm_));
  return norm(heads.k, kv_heads_, k_norm_);
}

absl::Status DeviceAttention::Rotate(DeviceRuntime& runtime, const DeviceRopes& ropes, const uint32_t* rope_rows,
                                     uint32_t rows, const Heads& heads) const {
  const auto rotate = [&](const DeviceRows& x, uint32_t count) {
    return runtime.Check(kernels::RopeGpu({.x = x.data(),
                                           .positions = rope_rows,
                                           .cos = ropes.cos(spec_.rope),
                                           .sin = ropes.sin(spec_.rope),
                                           .tokens = rows,
                                           .heads = count,
                                           .token_stride = count * d_,
                                           .head_stride = d_,
                                           .rotary_dim = d_},
                                          runtime.stream()),
                         "rope");
  };
  IHA_RETURN_IF_ERROR(rotate(heads.q, heads_));
  return rotate(heads.k, kv_heads_);
}

absl::StatusOr<DeviceAttention::Heads> DeviceAttention::Mix(DeviceRuntime& runtime, DeviceStep& step,
                                                            const DeviceRopes& ropes, const Heads& base) const {
  const uint32_t tokens = step.tokens(), stride = heads_ * d_;
  Heads mixed;
  for (DeviceRows* rows : {&mixed.q, &mixed.k, &mixed.v}) {
    IHA_ASSIGN_OR_RETURN(*rows, DeviceRows::Make(runtime, size_t{tokens} * pseudo_ * stride, "pseudo heads"));
  }
  IHA_ASSIGN_OR_RETURN(const uint32_t* const first_row, step.TokenRows(virtual_rope() ? pseudo_ : 1));
  const auto part = [&](const DeviceRows& x, uint32_t rotate, const DeviceRows& alpha, const DeviceRows& y,
                        const uint16_t* norm) {
    return kernels::IhaMixGpuPart{
        .x = x.data(), .token_stride = stride, .rotate = rotate, .alpha = alpha.data(), .y = y.data(), .norm = norm};
  };
  const uint16_t* const q_norm = post_mix() ? q_norm_.data() : nullptr;
  const uint16_t* const k_norm = post_mix() ? k_norm_.data() : nullptr;
  IHA_RETURN_IF_ERROR(runtime.Check(kernels::IhaMixRopeGpu({.shape = {tokens, heads_, pseudo_, d_},
                                                            .terms = terms_,
                                                            .count = 3,
                                                            .parts = {part(base.q, 1, alpha_q_, mixed.q, q_norm),
                                                                      part(base.k, 1, alpha_k_, mixed.k, k_norm),
                                                                      part(base.v, 0, alpha_v_, mixed.v, nullptr)},
                                                            .first_row = first_row,
                                                            .cos = ropes.cos(spec_.rope),
                                                            .sin = ropes.sin(spec_.rope),
                                                            .shift_cos = shift_cos_.data(),
                                                            .shift_sin = shift_sin_.data(),
                                                            .norm_eps = norm_eps_,
                                                            .norm_mean_of = true_d_,
                                                            .max_shared_bytes = runtime.MaxSharedBytes()},
                                                           runtime.stream()),
                                    "iha_mix_rope"));
  return mixed;
}

absl::StatusOr<DeviceAttention::Heads> DeviceAttention::Place(DeviceRuntime& runtime, DeviceStep& step,
                                                              const DeviceRopes& ropes, const DevicePlaces& places,
                                                              const kernels::KvPagesGpu& pages,
                                                              const Heads& base) const {
  const uint32_t tokens = step.tokens();
  if (!q_norm_.empty() && !post_mix()) IHA_RETURN_IF_ERROR(NormHeads(runtime, tokens, base));
  if (spec_.kind == AttentionKind::kIha) {
    IHA_ASSIGN_OR_RETURN(Heads mixed, Mix(runtime, step, ropes, base));
    IHA_RETURN_IF_ERROR(Append(runtime, places, pages, mixed));
    return mixed;
  }
  IHA_ASSIGN_OR_RETURN(const uint32_t* const rows, step.TokenRows(1));
  IHA_RETURN_IF_ERROR(Rotate(runtime, ropes, rows, tokens, base));
  IHA_RETURN_IF_ERROR(Append(runtime, places, pages, base));
  return Heads();
}

absl::Status DeviceAttention::Append(DeviceRuntime& runtime, const DevicePlaces& places,
                                     const kernels::KvPagesGpu& pages, const Heads& heads) const {
  return runtime.Check(kernels::KvAppendGpu({.pages = pages,
                                             .k = heads.k.data(),
                                             .v = heads.v.data(),
                                             .row_sequence = places.row_sequence.data(),
                                             .positions = places.positions.data(),
                                             .page_table = places.page_table.data(),
                                             .pages_per_sequence = places.pages_per_sequence,
                                             .rows = places.rows},
                                            runtime.stream()),
                       "kv_append");
}

absl::StatusOr<DeviceRows> DeviceAttention::Attend(DeviceRuntime& runtime, const DevicePlaces& places,
                                                   const kernels::KvPagesGpu& pages, const Heads& heads) const {
  IHA_ASSIGN_OR_RETURN(DeviceRows y, DeviceRows::Make(runtime, size_t{places.rows} * heads_ * d_v_, "attended"));
  const kernels::AttentionGpuArgs args{.q = heads.q.data(),
                                       .k_pages = pages.k_pages,
                                       .v_pages = pages.v_pages,
                                       .page_table = places.page_table.data(),
                                       .q_begin = places.q_begin.data(),
                                       .kv_length = places.kv_length.data(),
                                       .out = y.data(),
                                       .sequences = places.sequences,
                                       .max_rows = places.max_rows,
                                       .pages_per_sequence = places.pages_per_sequence,
                                       .heads = heads_,
                                       .kv_heads = kv_heads_,
                                       .d = d_,
                                       .d_v = d_v_,
                                       .scale = scale_,
                                       .mask = Mask(),
                                       .max_keys = places.max_keys};
  if (spec_.kind == AttentionKind::kTalkingHeads) {
    IHA_RETURN_IF_ERROR(AttendTalking(runtime, args));
    return y;
  }
  bool done = false;
  if (DeviceFast* const fast = runtime.fast(); fast != nullptr) {
    IHA_ASSIGN_OR_RETURN(done, AttendPrompts(*fast, places, heads, args));
    if (!done) {
      IHA_ASSIGN_OR_RETURN(done, AttendInPieces(runtime, places, args));
    }
  }
  if (!done) IHA_RETURN_IF_ERROR(runtime.Check(kernels::AttentionGpu(args, runtime.stream()), "attention"));
  return y;
}

absl::StatusOr<bool> DeviceAttention::AttendPrompts(DeviceFast& fast, const DevicePlaces& places, const Heads& heads,
                                                    const kernels::AttentionGpuArgs& args) const {
  const bool hides = args.mask.window != 0 &&
                     int64_t{args.mask.window} * (args.mask.token_window ? pseudo_ : 1) < int64_t{places.max_keys};
  if (!places.whole || hides || args.mask.token_causal || d_ != d_v_) return false;
  for (uint32_t s = 0; s < places.sequences; s++) {
    if (places.row_begin[s + 1] - places.row_begin[s] < kFastPromptRows) return false;
  }
  for (uint32_t s = 0; s < places.sequences; s++) {
    const size_t row = places.row_begin[s], q = row * heads_ * d_, kv = row * kv_heads_ * d_;
    IHA_ASSIGN_OR_RETURN(const bool taken, fast.CausalAttention({.q = args.q + q,
                                                                 .k = heads.k.data() + kv,
                                                                 .v = heads.v.data() + kv,
                                                                 .out = args.out + q,
                                                                 .rows = places.row_begin[s + 1] - places.row_begin[s],
                                                                 .heads = heads_,
                                                                 .kv_heads = kv_heads_,
                                                                 .d = d_,
                                                                 .scale = scale_}));
    if (!taken) return false;  // what was enqueued is written over
  }
  return true;
}

absl::StatusOr<bool> DeviceAttention::AttendInPieces(DeviceRuntime& runtime, const DevicePlaces& places,
                                                     kernels::AttentionGpuArgs args) const {
  args.split_keys = kernels::AttentionGpuSplitFor(heads_ * places.sequences, args.max_rows, args.max_keys,
                                                  runtime.fast()->processors());
  if (args.split_keys == 0) return false;
  args.rows = places.rows;
  const size_t pieces = size_t{kernels::AttentionGpuPieces(args)} * args.rows * heads_;
  IHA_ASSIGN_OR_RETURN(const auto out, DeviceArray<float>::Make(runtime, pieces * d_v_, "pieces"));
  IHA_ASSIGN_OR_RETURN(const auto sums, DeviceArray<float>::Make(runtime, pieces * 2, "sums of pieces"));
  args.split_out = out.data();
  args.split_sums = sums.data();
  IHA_RETURN_IF_ERROR(runtime.Check(kernels::AttentionGpu(args, runtime.stream()), "attention in pieces"));
  return true;
}

absl::Status DeviceAttention::AttendTalking(DeviceRuntime& runtime, const kernels::AttentionGpuArgs& args) const {
  kernels::TalkingHeadsGpuArgs talking{.attention = args, .pre = pre_.data(), .post = post_.data()};
  talking.block_rows = kernels::TalkingHeadsGpuRowsFor(args, kTalkingScratchBytes);
  IHA_ASSIGN_OR_RETURN(const auto scores,
                       DeviceArray<float>::Make(runtime, kernels::TalkingHeadsGpuScratch(talking), "talking scores"));
  talking.scores = scores.data();
  return runtime.Check(kernels::TalkingHeadsGpu(talking, runtime.stream()), "talking_heads");
}

absl::StatusOr<DeviceRows> DeviceAttention::Collapse(DeviceRuntime& runtime, uint32_t tokens,
                                                     const DeviceRows& attended, const DeviceRows& values) const {
  IHA_ASSIGN_OR_RETURN(DeviceRows y, DeviceRows::Make(runtime, size_t{tokens} * heads_ * d_, "collapsed"));
  const bool xsa = spec_.xsa == Xsa::kPseudo;
  if (spec_.collapse == CollapseKind::kPerHead) {
    IHA_RETURN_IF_ERROR(runtime.Check(kernels::IhaCollapseGpu({.a = attended.data(),
                                                               .v = xsa ? values.data() : nullptr,
                                                               .collapse = collapse_.data(),
                                                               .out = y.data(),
                                                               .tokens = tokens,
                                                               .heads = heads_,
                                                               .pseudo = pseudo_,
                                                               .d = d_},
                                                              runtime.stream()),
                                      "iha_collapse"));
    return y;
  }
  IHA_RETURN_IF_ERROR(runtime.Check(kernels::IhaCollapseGlobalGpu({.a = attended.data(),
                                                                   .collapse = collapse_global_.data(),
                                                                   .out = y.data(),
                                                                   .terms = collapse_terms_,
                                                                   .tokens = tokens,
                                                                   .heads = heads_,
                                                                   .pseudo = pseudo_,
                                                                   .d = d_,
                                                                   .v = xsa ? values.data() : nullptr,
                                                                   .max_shared_bytes = runtime.MaxSharedBytes()},
                                                                  runtime.stream()),
                                    "iha_collapse_global"));
  return y;
}

absl::StatusOr<DeviceRows> DeviceAttention::Finish(DeviceRuntime& runtime, uint32_t tokens, const uint16_t* x,
                                                   const DeviceRows& base_v, DeviceRows y) const {
  kernels::EpilogueGpuArgs args{.a = y.data(), .out = y.data(), .tokens = tokens, .heads = out_heads_, .d = d_v_};
  DeviceRows combined, gates;
  DeviceArray<float> logits;
  if (spec_.kind == AttentionKind::kDiff || spec_.kind == AttentionKind::kDiffV2) {
    IHA_ASSIGN_OR_RETURN(combined, DeviceRows::Make(runtime, size_t{tokens} * out_heads_ * d_v_, "differences"));
    args.out = combined.data();
  }
  if (spec_.kind == AttentionKind::kDiffV2) {
    IHA_ASSIGN_OR_RETURN(logits, DeviceArray<float>::Make(runtime, size_t{tokens} * lambda_proj_.n, "lambda logits"));
    IHA_RETURN_IF_ERROR(ApplyLinear(runtime, lambda_proj_, x, tokens, logits.data()));
    args.combine = kernels::EpilogueCombine::kDiffGated;
    args.logits = logits.data();
    args.logits_stride = lambda_proj_.n;
  } else if (spec_.kind == AttentionKind::kDiff) {
    args.combine = kernels::EpilogueCombine::kDiffNormed;
    args.weight = sub_norm_.data();
    args.lambda = lambda_;
    args.eps = static_cast<float>(spec_.norm_eps);
    args.mean_of = 2 * true_d_;
    args.scale = static_cast<float>(1.0 - spec_.lambda_init);
  }
  if (spec_.xsa == Xsa::kOutput) {
    args.v = base_v.data();
    args.v_stride = value_heads_ * d_v_;
    args.v_group = out_heads_ / value_heads_;
  }
  if (spec_.gate != Gate::kOff) {
    IHA_ASSIGN_OR_RETURN(gates, DeviceRows::Make(runtime, size_t{tokens} * gate_.n, "gates"));
    IHA_RETURN_IF_ERROR(ApplyLinear(runtime, gate_, x, tokens, gates.data()));
    args.gate = gates.data();
    args.gate_stride = gate_.n;
    args.gate_elementwise = spec_.gate == Gate::kElementwise;
  }
  const bool nothing = args.combine == kernels::EpilogueCombine::kNone && args.v == nullptr && args.gate == nullptr;
  if (nothing) return y;
  IHA_RETURN_IF_ERROR(runtime.Check(kernels::AttentionEpilogueGpu(args, runtime.stream()), "attention_epilogue"));
  return combined.empty() ? std::move(y) : std::move(combined);
}

}  // namespace iha::model
