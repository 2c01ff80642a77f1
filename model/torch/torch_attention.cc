#include "model/torch/torch_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace iha::model::torch {

using checkpoint::AlphaLayout;
using checkpoint::AttentionKind;
using checkpoint::CollapseKind;
using checkpoint::Gate;
using checkpoint::Knocking;
using checkpoint::LayerSpec;
using checkpoint::QkNorm;
using checkpoint::RopePairing;
using checkpoint::Xsa;

namespace {

// Scores that talking_heads holds at once, over all heads: 64 MiB of fp32.
constexpr int64_t kDenseScores = int64_t{1} << 24;

// To the order of `target_pseudo_source`.
at::Tensor ReadAlpha(const Weights& weights, const std::string& name, AlphaLayout layout) {
  const at::Tensor stored = weights.Get(name);
  return layout == AlphaLayout::kTargetPseudoSource ? stored : stored.permute({1, 2, 0}).contiguous();
}

double Dot(const Weights& weights, const std::string& a, const std::string& b) {
  const auto read = [&](const std::string& name) { return weights.GetFloat(name).to(at::kDouble); };
  return read(a).dot(read(b)).item<double>();
}

// y without its component along v.
at::Tensor ExcludeDirection(const at::Tensor& y, const at::Tensor& v) {
  const at::Tensor direction = v / v.square().sum({-1}, true).sqrt().clamp_min(1e-12);
  return y - (y * direction).sum({-1}, true) * direction;
}

at::Tensor RepeatHeads(const at::Tensor& x, int64_t times) { return times == 1 ? x : x.repeat_interleave(times, 1); }

}  // namespace

Attention::Attention(const Weights& weights, int64_t layer)
    : spec_(weights.config().layers[static_cast<size_t>(layer)]),
      heads_(weights.config().num_heads),
      kv_heads_(weights.config().num_kv_heads),
      output_heads_(weights.config().output_heads(spec_)),
      d_(weights.config().head_dim),
      scale_(weights.config().attention_scale) {
  const checkpoint::ModelConfig& config = weights.config();
  const std::string at = fmt::format("model.layers.{}.self_attn.", layer);
  q_ = LinearLayer::Read(weights, at + "q_proj", config.qkv_bias);
  k_ = LinearLayer::Read(weights, at + "k_proj", config.qkv_bias);
  v_ = LinearLayer::Read(weights, at + "v_proj", config.qkv_bias);
  o_ = LinearLayer::Read(weights, at + "o_proj", config.o_bias);
  if (spec_.qk_norm != QkNorm::kNone) {
    q_norm_ = Norm::Read(weights, at + "q_norm");
    k_norm_ = Norm::Read(weights, at + "k_norm");
  }
  if (spec_.kind == AttentionKind::kIha) {
    alpha_q_ = ReadAlpha(weights, at + "iha.alpha_q", spec_.alpha_layout);
    alpha_k_ = ReadAlpha(weights, at + "iha.alpha_k", spec_.alpha_layout);
    alpha_v_ = ReadAlpha(weights, at + "iha.alpha_v", spec_.alpha_layout);
    collapse_ = weights.Get(at + "iha.collapse");
    if (spec_.collapse == CollapseKind::kGlobal) collapse_ = collapse_.reshape({heads_, heads_, spec_.pseudo_heads});
  } else if (spec_.kind == AttentionKind::kTalkingHeads) {
    pre_ = weights.GetFloat(at + "talking_heads.pre");
    post_ = weights.GetFloat(at + "talking_heads.post");
  } else if (spec_.kind == AttentionKind::kDiff) {
    lambda_ = std::exp(Dot(weights, at + "diff.lambda_q1", at + "diff.lambda_k1")) -
              std::exp(Dot(weights, at + "diff.lambda_q2", at + "diff.lambda_k2")) + spec_.lambda_init;
    sub_norm_ = {weights.GetFloat(at + "diff.subln.weight"), spec_.norm_eps};
  } else if (spec_.kind == AttentionKind::kDiffV2) {
    lambda_proj_ = weights.Get(at + "diff.lambda_proj.weight");
  }
  if (spec_.gate != Gate::kOff) gate_ = weights.Get(at + "attn_gate.weight");
  if (spec_.knocking != Knocking::kOff) {
    const bool linear = spec_.knocking == Knocking::kLinear;
    knock_[0] = weights.Get(at + (linear ? "knocking.q" : "knocking.up"));
    knock_[1] = weights.Get(at + (linear ? "knocking.k" : "knocking.gate"));
    knock_[2] = weights.Get(at + (linear ? "knocking.v" : "knocking.down"));
  }
}

// For iha Hkv = H; every other kind has one pseudo head.
int64_t Attention::k_width() const { return kv_heads_ * spec_.pseudo_heads * d_; }
int64_t Attention::v_width() const { return k_width(); }

at::Tensor Attention::Forward(const at::Tensor& x, Step& step, LayerCache& cache) const {
  Heads heads = Project(x);
  if (spec_.knocking != Knocking::kOff) Knock(heads);
  const at::Tensor base_v = heads.v;
  const bool norm_first = spec_.qk_norm == QkNorm::kPreRope || spec_.qk_norm == QkNorm::kPreMix;
  if (norm_first) heads = {q_norm_(heads.q), k_norm_(heads.k), heads.v};
  if (spec_.kind == AttentionKind::kIha) Mix(heads);
  if (spec_.qk_norm == QkNorm::kPostMix) heads = {q_norm_(heads.q), k_norm_(heads.k), heads.v};
  const Rotation& rotation = step.RotationOf(spec_);
  heads = {Rotate(heads.q, rotation), Rotate(heads.k, rotation), heads.v};
  cache.Append(step.slots(), heads.k, heads.v);

  at::Tensor y = Attend(heads, step, cache);
  if (spec_.xsa == Xsa::kPseudo) y = ExcludeDirection(y, heads.v);
  y = Combine(y, x);
  if (spec_.xsa == Xsa::kOutput) y = ExcludeDirection(y, RepeatHeads(base_v, output_heads_ / kv_heads_));
  if (spec_.gate != Gate::kOff) {
    const int64_t columns = spec_.gate == Gate::kHeadwise ? 1 : d_;
    y = y * at::sigmoid(at::linear(x, gate_)).reshape({-1, output_heads_, columns});
  }
  return o_(y.reshape({x.size(0), output_heads_ * d_}));
}

Attention::Heads Attention::Project(const at::Tensor& x) const {
  return {q_(x).reshape({-1, heads_, d_}), k_(x).reshape({-1, kv_heads_, d_}), v_(x).reshape({-1, kv_heads_, d_})};
}

void Attention::Knock(Heads& heads) const {
  if (spec_.knocking == Knocking::kLinear) {
    heads = {at::matmul(heads.q, knock_[0]), at::matmul(heads.k, knock_[1]), at::matmul(heads.v, knock_[2])};
    return;
  }
  const at::Tensor gated = at::matmul(heads.v, knock_[0]) * at::sigmoid(at::matmul(heads.v, knock_[1]));
  heads.v = 2 * at::matmul(gated, knock_[2]);
}

// [tokens, source, d] -> [tokens * P, target, d].
void Attention::Mix(Heads& heads) const {
  const auto mix = [this](const at::Tensor& x, const at::Tensor& alpha) {
    return at::einsum("tmd,hjm->tjhd", {x, alpha}).reshape({-1, heads_, d_});
  };
  heads = {mix(heads.q, alpha_q_), mix(heads.k, alpha_k_), mix(heads.v, alpha_v_)};
}

at::Tensor Attention::Rotate(const at::Tensor& x, const Rotation& rotation) const {
  const at::Tensor f = x.to(at::kFloat);
  const bool half = spec_.rope_pairing == RopePairing::kHalf;
  const at::Tensor pairs = half ? f.reshape({-1, x.size(1), 2, d_ / 2}) : f.reshape({-1, x.size(1), d_ / 2, 2});
  const int64_t side = half ? 2 : 3;
  const at::Tensor u = pairs.select(side, 0);
  const at::Tensor v = pairs.select(side, 1);
  const at::Tensor turned = at::stack({u * rotation.cos - v * rotation.sin, v * rotation.cos + u * rotation.sin}, side);
  return turned.reshape(x.sizes()).to(x.scalar_type());
}

at::Tensor Attention::Attend(const Heads& heads, Step& step, const LayerCache& cache) const {
  const bool dense = spec_.kind == AttentionKind::kTalkingHeads;
  const int64_t pseudo = spec_.pseudo_heads;
  std::vector<at::Tensor> outputs;
  for (size_t i = 0; i < step.parts().size(); i++) {
    const Step::Part& part = step.parts()[i];
    const Visible& visible = step.VisibleTo(i, spec_, dense);
    const at::Tensor q = heads.q.narrow(0, part.first * pseudo, part.tokens * pseudo);
    auto [k, v] = cache.Gather(visible.slots, q.scalar_type());
    k = k.reshape({-1, kv_heads_, d_});
    // diff: two neighbouring heads share a value of twice the width.
    v = spec_.kind == AttentionKind::kDiff ? RepeatHeads(v.reshape({-1, heads_ / 2, 2 * d_}), 2)
                                           : v.reshape({-1, kv_heads_, d_});
    outputs.push_back(dense ? TalkingHeads(q, k, v, visible) : Softmax(q, k, v, visible));
  }
  return outputs.size() == 1 ? outputs.front() : at::cat(outputs);
}

at::Tensor Attention::Softmax(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const Visible& visible) const {
  const auto batched = [](const at::Tensor& x) { return x.transpose(0, 1).unsqueeze(0); };
  std::optional<at::Tensor> mask;
  if (visible.mask.defined()) mask = visible.mask.unsqueeze(0).unsqueeze(0);
  return at::scaled_dot_product_attention(batched(q), batched(k), batched(v), mask, 0.0, visible.causal, scale_,
                                          heads_ != kv_heads_)
      .squeeze(0)
      .transpose(0, 1);
}

// Scores of all heads are mixed before the softmax and weights after it, so they are written out, some queries at a
// time.
at::Tensor Attention::TalkingHeads(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                   const Visible& visible) const {
  const int64_t group = heads_ / kv_heads_;
  const at::Tensor keys = RepeatHeads(k, group).permute({1, 2, 0});  // [H, d, keys]
  const at::Tensor values = RepeatHeads(v, group).transpose(0, 1);   // [H, keys, d]
  const int64_t rows = std::max<int64_t>(1, kDenseScores / (heads_ * k.size(0)));
  std::vector<at::Tensor> outputs;
  for (int64_t first = 0; first < q.size(0); first += rows) {
    const int64_t count = std::min(rows, q.size(0) - first);
    const at::Tensor scores = at::matmul(q.narrow(0, first, count).transpose(0, 1), keys).to(at::kFloat) * scale_;
    at::Tensor mixed = at::einsum("ars,ab->brs", {scores, pre_});
    if (visible.mask.defined()) {
      mixed = mixed.masked_fill(visible.mask.narrow(0, first, count).logical_not(), -INFINITY);
    }
    const at::Tensor weights = at::einsum("brs,bc->crs", {at::softmax(mixed, -1), post_});
    outputs.push_back(at::matmul(weights.to(v.scalar_type()), values).transpose(0, 1));
  }
  return at::cat(outputs);
}

// Attention outputs [tokens * P, H, d] (diff: width 2 d) to what the modifiers and o_proj take: [tokens, heads, d].
at::Tensor Attention::Combine(const at::Tensor& attended, const at::Tensor& x) const {
  switch (spec_.kind) {
    case AttentionKind::kGlobal:
    case AttentionKind::kLocal:
    case AttentionKind::kTalkingHeads:
      return attended;
    case AttentionKind::kIha: {
      const at::Tensor by_pseudo = attended.reshape({-1, spec_.pseudo_heads, heads_, d_});
      return spec_.collapse == CollapseKind::kPerHead ? at::einsum("hj,tjhd->thd", {collapse_, by_pseudo})
                                                      : at::einsum("hij,tjid->thd", {collapse_, by_pseudo});
    }
    case AttentionKind::kDiff: {
      const at::Tensor pairs = attended.reshape({-1, heads_ / 2, 2, 2 * d_});
      return (1 - spec_.lambda_init) * sub_norm_(pairs.select(2, 0) - lambda_ * pairs.select(2, 1));
    }
    case AttentionKind::kDiffV2: {
      const at::Tensor pairs = attended.reshape({-1, heads_ / 2, 2, d_});
      const at::Tensor lambda = at::sigmoid(at::linear(x, lambda_proj_)).unsqueeze(-1);
      return pairs.select(2, 0) - lambda * pairs.select(2, 1);
    }
  }
  return attended;
}

}  // namespace iha::model::torch
