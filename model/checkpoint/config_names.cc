// Names of the config's enums, and the canonical encoding of the function it describes.
#include "common/canonical.h"
#include "model/checkpoint/config.h"

namespace iha::checkpoint {
namespace {

void WriteRope(const RopeSpec& rope, CanonicalWriter& out) {
  out.String(NameOf(rope.scaling)).Double(rope.theta).Double(rope.factor).Double(rope.attention_factor);
  out.Double(rope.low_freq_factor).Double(rope.high_freq_factor).Int(rope.original_max_positions);
  out.Double(rope.beta_fast).Double(rope.beta_slow).Bool(rope.truncate);
}

template <class Enum>
int64_t Number(Enum value) {
  return static_cast<int64_t>(value);  // enumerators are numbered by record version 1: append, never reorder
}

void WriteLayer(const LayerSpec& layer, CanonicalWriter& out) {
  out.String(NameOf(layer.kind)).Bool(layer.window.has_value());
  if (layer.window.has_value()) out.Int(Number(layer.window->unit)).Int(layer.window->size);
  out.Int(Number(layer.rope_pairing)).String(NameOf(layer.qk_norm)).Int(layer.rope);
  out.Int(layer.pseudo_heads).Int(Number(layer.alpha_layout)).Int(Number(layer.collapse));
  out.Int(Number(layer.mask)).Int(Number(layer.rope_positions));
  out.Double(layer.lambda_init).Double(layer.norm_eps);
  out.Int(Number(layer.xsa)).Int(Number(layer.gate)).Int(Number(layer.knocking));
}

}  // namespace

const char* NameOf(Family family) {
  switch (family) {
    case Family::kLlama:
      return "llama";
    case Family::kMistral:
      return "mistral";
    case Family::kQwen2:
      return "qwen2";
    case Family::kQwen3:
      return "qwen3";
    case Family::kGemma3Text:
      return "gemma3_text";
  }
  return "?";
}

const char* NameOf(Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return "silu";
    case Activation::kGeluErf:
      return "gelu";
    case Activation::kGeluTanh:
      return "gelu_pytorch_tanh";
    case Activation::kRelu:
      return "relu";
  }
  return "?";
}

const char* NameOf(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::kGlobal:
      return "global";
    case AttentionKind::kLocal:
      return "local";
    case AttentionKind::kIha:
      return "iha";
    case AttentionKind::kTalkingHeads:
      return "talking_heads";
    case AttentionKind::kDiff:
      return "diff";
    case AttentionKind::kDiffV2:
      return "diff_v2";
  }
  return "?";
}

const char* NameOf(AlphaLayout layout) {
  return layout == AlphaLayout::kSourceTargetPseudo ? "source_target_pseudo" : "target_pseudo_source";
}

const char* NameOf(CollapseKind kind) { return kind == CollapseKind::kPerHead ? "per_head" : "global"; }

const char* NameOf(QkNorm norm) {
  switch (norm) {
    case QkNorm::kNone:
      return "none";
    case QkNorm::kPreRope:
      return "pre_rope";
    case QkNorm::kPreMix:
      return "pre_mix";
    case QkNorm::kPostMix:
      return "post_mix";
  }
  return "?";
}

std::string ModelConfig::FunctionBytes() const {
  CanonicalWriter out("iha.model-function", 1);
  out.Int(vocab_size).Int(hidden_size).Int(intermediate_size).Int(num_heads).Int(num_kv_heads).Int(head_dim);
  out.Double(rms_norm_eps).Double(attention_scale).String(NameOf(activation)).Int(Number(mlp));
  out.Bool(qkv_bias).Bool(o_bias).Bool(mlp_bias).Bool(tied_embeddings);
  out.Bool(norm_plus_one).Bool(sandwich_norms).Double(embedding_scale).Int(context_tokens);
  out.List(ropes.size());
  for (const RopeSpec& rope : ropes) WriteRope(rope, out);
  out.List(layers.size());
  for (const LayerSpec& layer : layers) WriteLayer(layer, out);
  return out.bytes();
}

}  // namespace iha::checkpoint
