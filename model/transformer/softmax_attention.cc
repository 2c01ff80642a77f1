#include "model/transformer/softmax_attention.h"

#include <fmt/format.h>

#include "common/status_macros.h"
#include "kernels/diff/diff.h"

namespace iha::model {

using checkpoint::AttentionKind;
using checkpoint::ModelConfig;

absl::StatusOr<std::unique_ptr<AttentionLayer>> SoftmaxAttention::Make(const ModelConfig& config, int64_t layer,
                                                                       const CacheOptions& cache, const Packer& packer,
                                                                       RopeTables& ropes) {
  const checkpoint::LayerSpec& spec = config.layers[static_cast<size_t>(layer)];
  IHA_ASSIGN_OR_RETURN(AttentionInputs inputs, AttentionInputs::Make(config, layer, packer));
  const SoftmaxCoreShape core{.heads = inputs.heads(),
                              .key_heads = inputs.kv_heads(),
                              .window = WindowOf(spec),
                              .scale = static_cast<float>(config.attention_scale),
                              .layout = checkpoint::KvLayoutOf(config, spec, cache.type)};
  IHA_ASSIGN_OR_RETURN(Difference difference, LoadDifference(config, layer, packer));
  const size_t outputs = difference.pairs == Pairs::kNone ? core.heads : core.heads / 2;
  IHA_ASSIGN_OR_RETURN(AttentionOutput output, AttentionOutput::Make(config, layer, packer, outputs, core.layout.d_v));
  return std::unique_ptr<AttentionLayer>(new SoftmaxAttention(std::move(inputs), core, std::move(difference),
                                                              std::move(output),
                                                              static_cast<size_t>(config.hidden_size), ropes));
}

absl::StatusOr<SoftmaxAttention::Difference> SoftmaxAttention::LoadDifference(const ModelConfig& config, int64_t layer,
                                                                              const Packer& packer) {
  const checkpoint::LayerSpec& spec = config.layers[static_cast<size_t>(layer)];
  const std::string prefix = fmt::format("model.layers.{}.self_attn.diff.", layer);
  Difference difference;
  if (spec.kind == AttentionKind::kDiffV2) {
    difference.pairs = Pairs::kGated;
    const LinearPart lambda[] = {{prefix + "lambda_proj", config.num_heads / 2, false}};
    IHA_ASSIGN_OR_RETURN(difference.lambda, packer.MakeLinear(lambda, config.hidden_size));
  }
  if (spec.kind == AttentionKind::kDiff) {
    difference.pairs = Pairs::kNormed;
    std::vector<float> vectors[4];
    const char* const names[] = {"lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"};
    for (size_t i = 0; i < 4; i++) {
      IHA_ASSIGN_OR_RETURN(vectors[i], packer.Vector(prefix + names[i], config.head_dim));
    }
    difference.lambda_value = kernels::DiffLambda(vectors[0], vectors[1], vectors[2], vectors[3], spec.lambda_init);
    difference.eps = static_cast<float>(spec.norm_eps);
    difference.scale = static_cast<float>(1.0 - spec.lambda_init);
    IHA_ASSIGN_OR_RETURN(difference.norm, packer.Vector(prefix + "subln.weight", 2 * config.head_dim));
  }
  return difference;
}

void SoftmaxAttention::Forward(const StepTokens& tokens, size_t cache_offset, const float* x, float* out,
                               kernels::ParallelFor& parallel) {
  const size_t n = tokens.count();
  OpProfile& profile = *tokens.profile;
  y_.resize(n * inputs_.heads() * core_.d_v());
  profile.Time(Op::kQkv, inputs_.ProjectWork(n), [&] { inputs_.Project(n, x, parallel); });
  profile.Time(Op::kPositions, {}, [&] {
    inputs_.Norm(parallel);
    inputs_.Rotate(tokens.positions, 1, ropes_, parallel);
  });
  core_.Forward(tokens, cache_offset, inputs_, y_.data(), parallel);
  float* combined = y_.data();
  if (difference_.pairs != Pairs::kNone) {
    profile.Time(Op::kCombine, WorkOf(difference_.lambda, n), [&] { combined = Combine(n, x, parallel); });
  }
  profile.Time(Op::kAttentionOutput, output_.Work(n), [&] { output_.Forward(n, x, combined, inputs_, out, parallel); });
}

float* SoftmaxAttention::Combine(size_t tokens, const float* x, kernels::ParallelFor& parallel) {
  const kernels::DiffShape shape{.tokens = tokens, .pairs = inputs_.heads() / 2, .d = core_.d_v()};
  combined_.resize(tokens * shape.pairs * shape.d);
  if (difference_.pairs == Pairs::kGated) {
    lambda_logits_.resize(tokens * shape.pairs);
    Apply(difference_.lambda, x, hidden_, tokens, lambda_logits_.data(), shape.pairs, parallel);
    kernels::DiffGated(shape, y_.data(), lambda_logits_.data(), combined_.data(), parallel);
  } else {
    const kernels::DiffNorm norm{.lambda = difference_.lambda_value,
                                 .weight = difference_.norm.data(),
                                 .eps = difference_.eps,
                                 .scale = difference_.scale};
    kernels::DiffNormed(shape, norm, y_.data(), combined_.data(), parallel);
  }
  return combined_.data();
}

}  // namespace iha::model
