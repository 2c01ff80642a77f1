#include "model/checkpoint/cost.h"

#include <algorithm>
#include <string_view>

#include "model/checkpoint/checkpoint.h"

namespace iha::checkpoint {
namespace {

// sum over t = 0 .. count - 1 of min(t + 1, window)
double CausalPairs(double count, double window) {
  if (window >= count) return count * (count + 1) / 2;
  return window * (window + 1) / 2 + (count - window) * window;
}

double KnockingFlops(const ModelConfig& config, Knocking knocking) {
  const double d = static_cast<double>(config.head_dim), matrix = 2 * d * d;
  const double heads = static_cast<double>(config.num_heads), kv_heads = static_cast<double>(config.num_kv_heads);
  switch (knocking) {
    case Knocking::kOff:
      return 0;
    case Knocking::kLinear:
      return matrix * (heads + 2 * kv_heads);
    case Knocking::kMlp:
      return 3 * matrix * kv_heads;
  }
  return 0;
}

}  // namespace

FlopsPerToken& FlopsPerToken::operator+=(const FlopsPerToken& other) {
  linear += other.linear;
  mlp += other.mlp;
  mix += other.mix;
  scores += other.scores;
  collapse += other.collapse;
  head += other.head;
  return *this;
}

double VisiblePairs(const LayerSpec& layer, int64_t length) {
  const double n = static_cast<double>(length), p = static_cast<double>(layer.pseudo_heads);
  const bool token_window = layer.window.has_value() && layer.window->unit == WindowUnit::kToken;
  const double window = layer.window.has_value() ? static_cast<double>(layer.window->size) : n * p;
  if (layer.kind != AttentionKind::kIha || layer.mask == IhaMask::kTokenCausal) {
    return CausalPairs(n, window) * p * p / n;  // whole tokens: P queries see P keys of each
  }
  if (!token_window) return CausalPairs(n * p, window) / n;
  // Flat order, less the tokens that have left the window: max(0, n - w + 1) of them for token n.
  const double gone = std::max(0.0, n - window);
  return (CausalPairs(n * p, n * p) - p * p * gone * (gone + 1) / 2) / n;
}

FlopsPerToken LayerFlops(const ModelConfig& config, const LayerSpec& layer, int64_t length) {
  const double hidden = static_cast<double>(config.hidden_size), inner = static_cast<double>(config.intermediate_size);
  const double heads = static_cast<double>(config.num_heads), kv_heads = static_cast<double>(config.num_kv_heads);
  const double d = static_cast<double>(config.head_dim), p = static_cast<double>(layer.pseudo_heads);
  const double out_heads = static_cast<double>(config.output_heads(layer));
  const double pairs = VisiblePairs(layer, length);
  FlopsPerToken flops;
  flops.linear = 2 * hidden * d * (heads + 2 * kv_heads + out_heads);
  if (layer.gate != Gate::kOff) flops.linear += 2 * hidden * out_heads * (layer.gate == Gate::kElementwise ? d : 1);
  if (layer.kind == AttentionKind::kDiffV2) flops.linear += 2 * hidden * heads / 2;
  flops.mlp = 2 * hidden * inner * (config.mlp == MlpKind::kGated ? 3 : 2);
  // diff: H score maps of width d, then H/2 differences times values of width 2 d: the same count.
  flops.scores = 4 * heads * d * pairs;
  flops.mix = KnockingFlops(config, layer.knocking);
  if (layer.kind == AttentionKind::kTalkingHeads) flops.mix += 4 * heads * heads * pairs;
  if (layer.kind == AttentionKind::kIha) {
    flops.mix += 6 * heads * heads * p * d;
    flops.collapse = 2 * heads * p * d * (layer.collapse == CollapseKind::kGlobal ? heads : 1);
  }
  return flops;
}

FlopsPerToken ModelFlops(const ModelConfig& config, int64_t length) {
  FlopsPerToken total;
  for (const LayerSpec& layer : config.layers) total += LayerFlops(config, layer, length);
  total.head = 2 * static_cast<double>(config.vocab_size) * static_cast<double>(config.hidden_size);
  return total;
}

bool IhaCachesMixed(const ModelConfig& config, const LayerSpec& layer, IhaCacheForm form) {
  if (layer.qk_norm == QkNorm::kPostMix) return true;
  if (form != IhaCacheForm::kByRule) return form == IhaCacheForm::kMixed;
  return layer.pseudo_heads * layer.pseudo_heads <= layer.pseudo_heads + config.num_heads;
}

kernels::KvLayout KvLayoutOf(const ModelConfig& config, const LayerSpec& layer, kernels::StorageType type) {
  const size_t d = static_cast<size_t>(config.head_dim), keys = layer.kind == AttentionKind::kDiff ? 2 : 1;
  return {.type = type, .d = d, .d_v = keys * d, .keys = keys};
}

namespace {

int64_t LayerKvNumbersPerToken(const ModelConfig& config, const LayerSpec& layer, IhaCacheForm form) {
  const bool iha = layer.kind == AttentionKind::kIha;
  if (iha && !IhaCachesMixed(config, layer, form)) {
    return 2 * config.num_heads * config.head_dim;  // rows of base keys and values, without padding
  }
  const kernels::KvLayout layout = KvLayoutOf(config, layer, kernels::StorageType::kF32);
  const int64_t parts = config.num_kv_heads / static_cast<int64_t>(layout.keys) * (iha ? layer.pseudo_heads : 1);
  return parts * static_cast<int64_t>(layout.bytes() / (kernels::kKeyBlock * sizeof(float)));
}

}  // namespace

int64_t KvNumbersPerToken(const ModelConfig& config, IhaCacheForm form) {
  int64_t total = 0;
  for (const LayerSpec& layer : config.layers) total += LayerKvNumbersPerToken(config, layer, form);
  return total;
}

int64_t KvNumbersOfSequence(const ModelConfig& config, int64_t length) {
  int64_t total = 0;
  for (const LayerSpec& layer : config.layers) {
    const int64_t window = WindowTokens(layer);
    const int64_t tokens = window == 0 ? length : std::min(length, window);
    total += tokens * LayerKvNumbersPerToken(config, layer, IhaCacheForm::kByRule);
  }
  return total;
}

int64_t WindowTokens(const LayerSpec& layer) {
  if (!layer.window.has_value()) return 0;
  const int64_t size = layer.window->size;
  if (layer.window->unit == WindowUnit::kToken) return size;
  // Query n P sees virtual keys from n P - size + 1 on.
  return (size - 1 + layer.pseudo_heads - 1) / layer.pseudo_heads + 1;
}

ParameterCount CountParameters(const ModelConfig& config) {
  ParameterCount count;
  for (const TensorSpec& spec : RequiredTensors(config)) {
    int64_t elements = 1;
    for (const int64_t size : spec.shape) elements *= size;
    const std::string_view name = spec.name;
    const auto within = [name](std::string_view part) { return name.find(part) != std::string_view::npos; };
    int64_t& part = name == "lm_head.weight" ? count.head
                    : within("embed_tokens") ? count.embedding
                    : within(".self_attn.")  ? count.attention
                    : within(".mlp.")        ? count.mlp
                                             : count.norms;
    part += elements;
  }
  return count;
}

}  // namespace iha::checkpoint
