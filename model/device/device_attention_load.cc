// The weights of DeviceAttention, and what has no kernel.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "common/errors.h"
#include "common/status_macros.h"
#include "kernels/attention/attention_gpu.h"
#include "kernels/diff/diff.h"
#include "kernels/iha_collapse/iha_collapse_gpu.h"
#include "kernels/iha_mix_rope/iha_mix_rope.h"
#include "kernels/iha_mix_rope/iha_mix_rope_gpu.h"
#include "kernels/logits/sample_gpu.h"
#include "kernels/matmul/matmul_gpu.h"
#include "kernels/rope/rope.h"
#include "kernels/talking_heads/talking_heads_gpu.h"
#include "model/checkpoint/rope.h"
#include "model/device/device_attention.h"

namespace iha::model {
namespace {

using checkpoint::AttentionKind;
using checkpoint::CollapseKind;
using checkpoint::Gate;
using checkpoint::Knocking;
using checkpoint::LayerSpec;
using checkpoint::ModelConfig;
using checkpoint::QkNorm;

constexpr uint32_t kHeadSizes[] = {64, 128, 256};
constexpr int64_t kMaxMixedHeads = std::min(kernels::kMixGpuMaxHeads, kernels::kCollapseGpuMaxHeads);

kernels::IhaMixGpuShape MixShape(const ModelConfig& config, const LayerSpec& spec) {
  return {1, static_cast<uint32_t>(config.num_heads), static_cast<uint32_t>(spec.pseudo_heads),
          DeviceHeadSize(config.head_dim)};
}

// What a block of the layer's kernels does with: those of the mix and of the collapse, for weights of two terms, are
// cut to the fewest heads.
size_t SharedBytes(const ModelConfig& config, const LayerSpec& spec) {
  const uint32_t d = DeviceHeadSize(config.head_dim), heads = static_cast<uint32_t>(config.num_heads);
  size_t most =
      std::max(kernels::MatmulGpuTileFor(1).shared_bytes(), kernels::MatmulGpuTileFor(1 << 20).shared_bytes());
  if (spec.kind == AttentionKind::kTalkingHeads) {
    return std::max({most, kernels::TalkingMixesGpuSharedBytes(heads), kernels::TalkingValuesGpuSharedBytes(d)});
  }
  const uint32_t d_v = spec.kind == AttentionKind::kDiff ? 2 * d : d;
  most = std::max(most, kernels::AttentionGpuSharedBytes(kernels::AttentionGpuWarps(1 << 20), d, d_v));
  if (spec.kind != AttentionKind::kIha) return most;
  const kernels::IhaMixGpuShape shape = MixShape(config, spec);
  most = std::max(most, kernels::MixGpuSharedBytes(shape, 2, spec.qk_norm == QkNorm::kPostMix, 16));
  if (spec.collapse != CollapseKind::kGlobal) return most;
  const uint32_t xsa_d = spec.xsa == checkpoint::Xsa::kPseudo ? d : 0;
  return std::max(most,
                  kernels::CollapseGpuSharedBytes(kernels::CollapseGpuLayoutFor(heads, shape.pseudo, 2), 1, xsa_d));
}

// "" if the kernels serve the layer, else what they lack.
std::string Lacks(const ModelConfig& config, const LayerSpec& spec, size_t max_shared_bytes) {
  const uint32_t d = DeviceHeadSize(config.head_dim);
  if (d == 0) return fmt::format("head_dim {} (at most {})", config.head_dim, kHeadSizes[2]);
  if (spec.kind == AttentionKind::kDiff && 2 * d > kHeadSizes[2]) {
    return fmt::format("kind diff with head_dim {} (at most {}: values are twice as wide)", config.head_dim,
                       kHeadSizes[2] / 2);
  }
  const bool iha = spec.kind == AttentionKind::kIha, talking = spec.kind == AttentionKind::kTalkingHeads;
  if ((iha && config.num_heads > kMaxMixedHeads) || (talking && config.num_heads > kernels::kTalkingGpuMaxHeads)) {
    return fmt::format("kind {} with {} heads (at most {})", iha ? "iha" : "talking_heads", config.num_heads,
                       iha ? kMaxMixedHeads : kernels::kTalkingGpuMaxHeads);
  }
  const size_t shared = SharedBytes(config, spec);
  if (shared <= max_shared_bytes) return "";
  const std::string of = iha ? fmt::format("{} x {} pseudo heads of {}", config.num_heads, spec.pseudo_heads, d)
                             : fmt::format("heads of {}", d);
  return fmt::format("kind {} with {}, {} bytes of shared memory for a block (at most {})",
                     checkpoint::NameOf(spec.kind), of, shared, max_shared_bytes);
}

DeviceAxis::Order OrderOf(const LayerSpec& spec) {
  return spec.rope_pairing == checkpoint::RopePairing::kHalf ? DeviceAxis::Order::kHalves : DeviceAxis::Order::kPairs;
}

}  // namespace

uint32_t DeviceHeadSize(int64_t d) {
  for (const uint32_t size : kHeadSizes) {
    if (d <= size) return size;
  }
  return 0;
}

absl::Status CheckDeviceLayers(const ModelConfig& config, size_t max_shared_bytes) {
  for (size_t layer = 0; layer < config.layers.size(); layer++) {
    const std::string lacks = Lacks(config, config.layers[layer], max_shared_bytes);
    if (lacks.empty()) continue;
    return FailedPrecondition("layer {}: {}: the device has no kernel for it; use --device cpu", layer, lacks);
  }
  if (config.vocab_size > int64_t{kernels::kSampleGpuMaxN}) {
    return FailedPrecondition(
        "vocab_size {} (at most {}): the device has no kernel that draws from it; use --device cpu", config.vocab_size,
        kernels::kSampleGpuMaxN);
  }
  if (const size_t draw = kernels::SampleGpuSharedBytes(static_cast<uint32_t>(config.vocab_size));
      draw > max_shared_bytes) {
    return FailedPrecondition(
        "vocab_size {}, {} bytes of shared memory for a block (at most {}): the device has no kernel that draws from "
        "it; "
        "use --device cpu",
        config.vocab_size, draw, max_shared_bytes);
  }
  return absl::OkStatus();
}

DeviceAttention::DeviceAttention(const ModelConfig& config, int64_t layer)
    : spec_(config.layers[static_cast<size_t>(layer)]),
      heads_(static_cast<uint32_t>(config.num_heads)),
      kv_heads_(static_cast<uint32_t>(config.num_kv_heads)),
      value_heads_(spec_.kind == AttentionKind::kDiff ? kv_heads_ / 2 : kv_heads_),  // of twice the width
      out_heads_(spec_.kind == AttentionKind::kDiff || spec_.kind == AttentionKind::kDiffV2 ? heads_ / 2 : heads_),
      pseudo_(static_cast<uint32_t>(spec_.pseudo_heads)),
      true_d_(static_cast<uint32_t>(config.head_dim)),
      d_(DeviceHeadSize(config.head_dim)),
      d_v_(spec_.kind == AttentionKind::kDiff ? 2 * d_ : d_),
      scale_(static_cast<float>(config.attention_scale)),
      norm_eps_(static_cast<float>(config.rms_norm_eps)),
      norm_plus_one_(config.norm_plus_one) {}

absl::StatusOr<DeviceAttention> DeviceAttention::Make(const ModelConfig& config, int64_t layer,
                                                      const DeviceWeights& weights) {
  DeviceAttention self(config, layer);
  const std::string at = fmt::format("model.layers.{}.self_attn.", layer);
  IHA_RETURN_IF_ERROR(self.LoadInputs(config, at, weights));
  IHA_RETURN_IF_ERROR(self.LoadKind(config, at, weights));
  IHA_RETURN_IF_ERROR(self.LoadOutput(config, at, weights));
  return self;
}

absl::Status DeviceAttention::LoadInputs(const ModelConfig& config, const std::string& at,
                                         const DeviceWeights& weights) {
  const DeviceAxis hidden = PlainAxis(config.hidden_size);
  const DeviceAxis q{.groups = heads_, .from = true_d_, .to = d_, .order = OrderOf(spec_)};
  const DeviceAxis k{.groups = kv_heads_, .from = true_d_, .to = d_, .order = OrderOf(spec_)};
  const DeviceAxis v{.groups = value_heads_, .from = true_d_ * kv_heads_ / value_heads_, .to = d_v_};
  std::vector<float> knock[3];
  const int64_t square[] = {true_d_, true_d_};
  if (spec_.knocking == Knocking::kLinear) {
    const char* const names[] = {"knocking.q", "knocking.k", "knocking.v"};
    for (size_t i = 0; i < 3; i++) {
      IHA_ASSIGN_OR_RETURN(knock[i], weights.Read(at + names[i], square));
    }
  }
  IHA_ASSIGN_OR_RETURN(q_, weights.Linear(at + "q_proj", q, hidden, config.qkv_bias, knock[0]));
  IHA_ASSIGN_OR_RETURN(k_, weights.Linear(at + "k_proj", k, hidden, config.qkv_bias, knock[1]));
  IHA_ASSIGN_OR_RETURN(v_, weights.Linear(at + "v_proj", v, hidden, config.qkv_bias, knock[2]));
  if (spec_.knocking == Knocking::kMlp) {
    const DeviceAxis head{.groups = 1, .from = true_d_, .to = d_};
    const auto load = [&](const char* name, float factor, DeviceLinear& linear) -> absl::Status {
      IHA_ASSIGN_OR_RETURN(const std::vector<float> stored, weights.Read(at + name, square));
      std::vector<float> transposed(stored.size());  // row vectors times a matrix
      for (size_t r = 0; r < true_d_; r++) {
        for (size_t c = 0; c < true_d_; c++) transposed[c * true_d_ + r] = factor * stored[r * true_d_ + c];
      }
      IHA_ASSIGN_OR_RETURN(linear, weights.Linear(transposed, head, head));
      return absl::OkStatus();
    };
    IHA_RETURN_IF_ERROR(load("knocking.up", 1, knock_up_));
    IHA_RETURN_IF_ERROR(load("knocking.gate", 1, knock_gate_));
    IHA_RETURN_IF_ERROR(load("knocking.down", 2, knock_down_));
  }
  if (spec_.qk_norm == QkNorm::kNone) return absl::OkStatus();
  const DeviceAxis head{.groups = 1, .from = true_d_, .to = d_, .order = OrderOf(spec_)};
  IHA_ASSIGN_OR_RETURN(q_norm_, weights.Vector(at + "q_norm.weight", head));
  IHA_ASSIGN_OR_RETURN(k_norm_, weights.Vector(at + "k_norm.weight", head));
  return absl::OkStatus();
}

absl::Status DeviceAttention::LoadKind(const ModelConfig& config, const std::string& at, const DeviceWeights& weights) {
  switch (spec_.kind) {
    case AttentionKind::kGlobal:
    case AttentionKind::kLocal:
      return absl::OkStatus();
    case AttentionKind::kIha:
      return LoadIha(config, at, weights);
    case AttentionKind::kDiffV2: {
      IHA_ASSIGN_OR_RETURN(lambda_proj_, weights.Linear(at + "diff.lambda_proj", PlainAxis(heads_ / 2),
                                                        PlainAxis(config.hidden_size), false));
      return absl::OkStatus();
    }
    case AttentionKind::kDiff: {
      std::vector<float> vectors[4];
      const char* const names[] = {"diff.lambda_q1", "diff.lambda_k1", "diff.lambda_q2", "diff.lambda_k2"};
      const int64_t d[] = {true_d_}, twice[] = {2 * true_d_};
      for (size_t i = 0; i < 4; i++) {
        IHA_ASSIGN_OR_RETURN(vectors[i], weights.Read(at + names[i], d));
      }
      lambda_ = kernels::DiffLambda(vectors[0], vectors[1], vectors[2], vectors[3], spec_.lambda_init);
      IHA_ASSIGN_OR_RETURN(std::vector<float> norm, weights.Read(at + "diff.subln.weight", twice));
      norm.resize(d_v_);
      IHA_ASSIGN_OR_RETURN(sub_norm_, DeviceArray<float>::Copy(weights.runtime(), norm, "sub-norm"));
      return absl::OkStatus();
    }
    case AttentionKind::kTalkingHeads: {
      const int64_t square[] = {heads_, heads_};
      IHA_ASSIGN_OR_RETURN(const std::vector<float> pre, weights.Read(at + "talking_heads.pre", square));
      IHA_ASSIGN_OR_RETURN(const std::vector<float> post, weights.Read(at + "talking_heads.post", square));
      IHA_ASSIGN_OR_RETURN(pre_, DeviceArray<float>::Copy(weights.runtime(), pre, "pre-mix"));
      IHA_ASSIGN_OR_RETURN(post_, DeviceArray<float>::Copy(weights.runtime(), post, "post-mix"));
      return absl::OkStatus();
    }
  }
  std::abort();  // the switch is complete
}

absl::Status DeviceAttention::LoadIha(const ModelConfig& config, const std::string& at, const DeviceWeights& weights) {
  const int64_t heads = heads_, pseudo = pseudo_;
  const bool stp = spec_.alpha_layout == checkpoint::AlphaLayout::kSourceTargetPseudo;
  const std::vector<int64_t> shape =
      stp ? std::vector<int64_t>{heads, heads, pseudo} : std::vector<int64_t>{heads, pseudo, heads};
  std::vector<float> alphas[3];
  const char* const names[] = {"iha.alpha_q", "iha.alpha_k", "iha.alpha_v"};
  for (size_t i = 0; i < 3; i++) {
    IHA_ASSIGN_OR_RETURN(const std::vector<float> stored, weights.Read(at + names[i], shape));
    alphas[i].resize(stored.size());
    kernels::IhaPackAlpha(
        stp ? kernels::IhaAlphaLayout::kSourceTargetPseudo : kernels::IhaAlphaLayout::kTargetPseudoSource, heads_,
        pseudo_, stored.data(), alphas[i].data());
    terms_ = std::max(terms_, kernels::MixGpuTerms(alphas[i].data(), alphas[i].size()));
  }
  DeviceRows* const packed[] = {&alpha_q_, &alpha_k_, &alpha_v_};
  const kernels::IhaMixGpuShape mix = MixShape(config, spec_);
  for (size_t i = 0; i < 3; i++) {
    std::vector<uint16_t> bits(kernels::MixGpuAlphaLayoutFor(mix, terms_).elements());
    kernels::MixGpuPackAlpha(mix, terms_, alphas[i].data(), bits.data());
    IHA_ASSIGN_OR_RETURN(*packed[i], DeviceRows::Copy(weights.runtime(), bits, "alpha"));
  }
  const bool global = spec_.collapse == CollapseKind::kGlobal;
  const int64_t collapse_shape[] = {heads, global ? heads * pseudo : pseudo};
  IHA_ASSIGN_OR_RETURN(const std::vector<float> collapse, weights.Read(at + "iha.collapse", collapse_shape));
  if (global) {
    collapse_terms_ = kernels::MixGpuTerms(collapse.data(), collapse.size());
    std::vector<uint16_t> bits(kernels::CollapseGpuLayoutFor(heads_, pseudo_, collapse_terms_).elements());
    kernels::CollapseGpuPack(heads_, pseudo_, collapse_terms_, collapse.data(), bits.data());
    IHA_ASSIGN_OR_RETURN(collapse_global_, DeviceRows::Copy(weights.runtime(), bits, "collapse"));
  } else {
    IHA_ASSIGN_OR_RETURN(collapse_, DeviceArray<float>::Copy(weights.runtime(), collapse, "collapse"));
  }
  // Rotations by j of the virtual positions n P + j; with token positions none.
  std::vector<double> frequency =
      checkpoint::InverseFrequencies(config.ropes[static_cast<size_t>(spec_.rope)], config.head_dim);
  if (!virtual_rope()) frequency.assign(frequency.size(), 0.0);
  frequency.resize(d_ / 2);
  std::vector<float> cos(pseudo_ * frequency.size()), sin(cos.size());
  kernels::FillRopeTable(frequency.data(), frequency.size(), 0, pseudo_, 1.0, cos.data(), sin.data());
  IHA_ASSIGN_OR_RETURN(shift_cos_, DeviceArray<float>::Copy(weights.runtime(), cos, "shift cos"));
  IHA_ASSIGN_OR_RETURN(shift_sin_, DeviceArray<float>::Copy(weights.runtime(), sin, "shift sin"));
  return absl::OkStatus();
}

absl::Status DeviceAttention::LoadOutput(const ModelConfig& config, const std::string& at,
                                         const DeviceWeights& weights) {
  const uint32_t width = spec_.kind == AttentionKind::kDiff ? 2 * true_d_ : true_d_;
  const DeviceAxis y{.groups = out_heads_, .from = width, .to = d_v_};
  if (spec_.gate != Gate::kOff) {
    IHA_ASSIGN_OR_RETURN(gate_,
                         weights.Linear(at + "attn_gate", spec_.gate == Gate::kElementwise ? y : PlainAxis(out_heads_),
                                        PlainAxis(config.hidden_size), false));
  }
  IHA_ASSIGN_OR_RETURN(o_, weights.Linear(at + "o_proj", PlainAxis(config.hidden_size), y, config.o_bias));
  return absl::OkStatus();
}

}  // namespace iha::model
