// Which tensors a config calls for, by name and shape (DESIGN section 6; Hugging Face's names).
#include "common/errors.h"
#include "model/checkpoint/checkpoint.h"

namespace iha::checkpoint {
namespace {

class Layout {
 public:
  explicit Layout(const ModelConfig& config) : config_(config) {}

  void Add(std::string name, std::vector<int64_t> shape) { specs_.push_back({std::move(name), std::move(shape)}); }
  void Linear(const std::string& name, int64_t rows, int64_t columns, bool bias) {
    Add(name + ".weight", {rows, columns});
    if (bias) Add(name + ".bias", {rows});
  }

  void Attention(const std::string& prefix, const LayerSpec& layer) {
    const int64_t hidden = config_.hidden_size, heads = config_.num_heads, kv_heads = config_.num_kv_heads;
    const int64_t d = config_.head_dim, output_heads = config_.output_heads(layer);
    Linear(prefix + "q_proj", heads * d, hidden, config_.qkv_bias);
    Linear(prefix + "k_proj", kv_heads * d, hidden, config_.qkv_bias);
    Linear(prefix + "v_proj", kv_heads * d, hidden, config_.qkv_bias);
    Linear(prefix + "o_proj", hidden, output_heads * d, config_.o_bias);
    if (layer.qk_norm != QkNorm::kNone) {
      Add(prefix + "q_norm.weight", {d});
      Add(prefix + "k_norm.weight", {d});
    }
    Kind(prefix, layer);
    if (layer.gate != Gate::kOff) {
      Add(prefix + "attn_gate.weight", {output_heads * (layer.gate == Gate::kElementwise ? d : 1), hidden});
    }
    if (layer.knocking == Knocking::kLinear) {
      for (const char* part : {"q", "k", "v"}) Add(prefix + "knocking." + part, {d, d});
    } else if (layer.knocking == Knocking::kMlp) {
      for (const char* part : {"up", "gate", "down"}) Add(prefix + "knocking." + part, {d, d});
    }
  }

  void Mlp(const std::string& prefix) {
    const int64_t hidden = config_.hidden_size, inner = config_.intermediate_size;
    if (config_.mlp == MlpKind::kGated) Linear(prefix + "gate_proj", inner, hidden, config_.mlp_bias);
    Linear(prefix + "up_proj", inner, hidden, config_.mlp_bias);
    Linear(prefix + "down_proj", hidden, inner, config_.mlp_bias);
  }

  std::vector<TensorSpec> Take() { return std::move(specs_); }

 private:
  void Kind(const std::string& prefix, const LayerSpec& layer) {
    const int64_t heads = config_.num_heads, pseudo = layer.pseudo_heads, d = config_.head_dim;
    switch (layer.kind) {
      case AttentionKind::kGlobal:
      case AttentionKind::kLocal:
        return;
      case AttentionKind::kIha: {
        const std::vector<int64_t> alpha = layer.alpha_layout == AlphaLayout::kSourceTargetPseudo
                                               ? std::vector<int64_t>{heads, heads, pseudo}
                                               : std::vector<int64_t>{heads, pseudo, heads};
        for (const char* part : {"q", "k", "v"}) Add(prefix + "iha.alpha_" + part, alpha);
        Add(prefix + "iha.collapse", {heads, layer.collapse == CollapseKind::kGlobal ? heads * pseudo : pseudo});
        return;
      }
      case AttentionKind::kTalkingHeads:
        Add(prefix + "talking_heads.pre", {heads, heads});
        Add(prefix + "talking_heads.post", {heads, heads});
        return;
      case AttentionKind::kDiff:
        for (const char* part : {"q1", "k1", "q2", "k2"}) Add(prefix + "diff.lambda_" + part, {d});
        Add(prefix + "diff.subln.weight", {2 * d});
        return;
      case AttentionKind::kDiffV2:
        Add(prefix + "diff.lambda_proj.weight", {heads / 2, config_.hidden_size});
        return;
    }
  }

  const ModelConfig& config_;
  std::vector<TensorSpec> specs_;
};

}  // namespace

std::vector<TensorSpec> RequiredTensors(const ModelConfig& config) {
  Layout layout(config);
  layout.Add("model.embed_tokens.weight", {config.vocab_size, config.hidden_size});
  for (size_t l = 0; l < config.layers.size(); ++l) {
    const std::string prefix = fmt::format("model.layers.{}.", l);
    layout.Add(prefix + "input_layernorm.weight", {config.hidden_size});
    layout.Attention(prefix + "self_attn.", config.layers[l]);
    layout.Add(prefix + "post_attention_layernorm.weight", {config.hidden_size});
    if (config.sandwich_norms) {
      layout.Add(prefix + "pre_feedforward_layernorm.weight", {config.hidden_size});
      layout.Add(prefix + "post_feedforward_layernorm.weight", {config.hidden_size});
    }
    layout.Mlp(prefix + "mlp.");
  }
  layout.Add("model.norm.weight", {config.hidden_size});
  if (!config.tied_embeddings) layout.Add("lm_head.weight", {config.vocab_size, config.hidden_size});
  return layout.Take();
}

}  // namespace iha::checkpoint
