#include "model/device/bf16_bound.h"

#include <fmt/format.h>

#include <cmath>

#include "common/status_macros.h"

namespace iha::model {
namespace {

using checkpoint::AttentionKind;
using checkpoint::ModelConfig;

// Variances are counted in roundings: of one, 2^-16 / 3, uniform in half a unit of the last of 8 bits.
constexpr double kRounding = 0x1p-16 / 3;
// Of a linear layer: its weights, its result; a bias is two more (itself, the sum).
constexpr double kLinear = 2, kBias = 2;
// Of a norm: its weights, its result.
constexpr double kNorm = 2;
// Of y = a - lambda b for equally large a, b that are half alike.
double DifferenceGain(double lambda) { return (1 + lambda * lambda) / (1 + lambda * lambda - lambda); }

// Of o_proj's output, if the layer's input has `input` roundings.
double AttentionError(const ModelConfig& config, const checkpoint::LayerSpec& spec, double scores, double input) {
  const bool iha = spec.kind == AttentionKind::kIha;
  const double projection = kNorm + kLinear + (config.qkv_bias ? kBias : 0);
  double query = projection + 1 + (iha ? 2 : 0);  // RoPE; k^ and the mix
  if (spec.qk_norm != checkpoint::QkNorm::kNone) query += kNorm;
  if (spec.qk_norm == checkpoint::QkNorm::kPostMix) query = projection + kNorm;  // one pass: weights, the result
  double value = projection + (iha ? 1 : 0);
  // Up, gate, their product, down.
  if (spec.knocking == checkpoint::Knocking::kMlp) value += 3 * kLinear + 1;
  // Of scores that vary by S^2 an error e of q, and as large a one of k, changes each weight by S^2 2 e of itself; then
  // the weights' and the result's rounding.
  double error = input + value + 2 * scores * (input + query) + 2;
  if (iha) error += 1;  // collapse
  const bool fused_xsa = spec.xsa == checkpoint::Xsa::kPseudo && spec.collapse == checkpoint::CollapseKind::kGlobal;
  if (iha && fused_xsa) error += 1;  // its rows
  if (spec.kind == AttentionKind::kDiff) error = DifferenceGain(spec.lambda_init) * error + 1;
  if (spec.kind == AttentionKind::kDiffV2) error = DifferenceGain(0.5) * error + 1;
  if (spec.xsa != checkpoint::Xsa::kOff) error *= 2;  // what it takes out is taken to be half
  if (spec.gate != checkpoint::Gate::kOff) error += input + kNorm + kLinear + 1;
  return error + kLinear + (config.o_bias ? kBias : 0);
}

// Gate and up, each of the same input, their product, down.
double MlpError(const ModelConfig& config, double input) {
  return 2 * (input + kNorm + kLinear) + 1 + kLinear + (config.mlp_bias ? kBias : 0);
}

class Lengths {
 public:
  explicit Lengths(const checkpoint::Checkpoint& checkpoint) : checkpoint_(checkpoint), config_(checkpoint.config()) {}

  // Squared lengths of `heads` heads of NAME_proj for inputs of length sqrt(hidden) and random direction.
  absl::StatusOr<std::vector<double>> Of(const std::string& layer, const char* name, int64_t heads,
                                         const checkpoint::LayerSpec& spec) const {
    const std::string at = layer + "self_attn.";
    const auto d = static_cast<size_t>(config_.head_dim), n = static_cast<size_t>(config_.hidden_size);
    std::vector<double> squares(static_cast<size_t>(heads));
    if (spec.qk_norm == checkpoint::QkNorm::kPreRope || spec.qk_norm == checkpoint::QkNorm::kPreMix) {
      IHA_ASSIGN_OR_RETURN(const double square, OfNorm(at + name + "_norm.weight"));
      return std::vector<double>(squares.size(), square);
    }
    const int64_t shape[] = {heads * config_.head_dim, config_.hidden_size};
    IHA_ASSIGN_OR_RETURN(const std::vector<float> w, Read(at + name + "_proj.weight", shape));
    IHA_ASSIGN_OR_RETURN(const std::vector<float> g, Read(layer + "input_layernorm.weight", std::span(shape).last(1)));
    for (size_t i = 0; i < w.size(); i++) {
      const double value = w[i] * (static_cast<double>(g[i % n]) + (config_.norm_plus_one ? 1 : 0));
      squares[i / n / d] += value * value;
    }
    if (config_.qkv_bias) {
      IHA_ASSIGN_OR_RETURN(const std::vector<float> b, Read(at + name + "_proj.bias", std::span(shape).first(1)));
      for (size_t i = 0; i < b.size(); i++) squares[i / d] += static_cast<double>(b[i]) * static_cast<double>(b[i]);
    }
    if (spec.knocking == checkpoint::Knocking::kLinear) {
      const int64_t square[] = {config_.head_dim, config_.head_dim};
      IHA_ASSIGN_OR_RETURN(const std::vector<float> t, Read(at + "knocking." + name, square));
      for (double& head : squares) head *= SumOfSquares(t) / static_cast<double>(d);
    }
    return squares;
  }

  // Of the H heads that iha mixes to P pseudo heads each, the mean over those.
  absl::StatusOr<std::vector<double>> Mixed(const std::string& layer, const char* name,
                                            const checkpoint::LayerSpec& spec,
                                            const std::vector<double>& squares) const {
    const std::string at = layer + "self_attn.";
    const size_t heads = squares.size(), pseudo = static_cast<size_t>(spec.pseudo_heads);
    if (spec.qk_norm == checkpoint::QkNorm::kPostMix) {
      IHA_ASSIGN_OR_RETURN(const double square, OfNorm(at + name + "_norm.weight"));
      return std::vector<double>(heads, square);
    }
    const bool stp = spec.alpha_layout == checkpoint::AlphaLayout::kSourceTargetPseudo;
    const int64_t h = config_.num_heads, p = spec.pseudo_heads;
    const std::vector<int64_t> shape = stp ? std::vector<int64_t>{h, h, p} : std::vector<int64_t>{h, p, h};
    IHA_ASSIGN_OR_RETURN(const std::vector<float> alpha, Read(at + "iha.alpha_" + name, shape));
    std::vector<double> mixed(heads);
    for (size_t i = 0; i < alpha.size(); i++) {
      const size_t source = stp ? i / (heads * pseudo) : i % heads;
      const size_t target = stp ? i / pseudo % heads : i / (pseudo * heads);
      mixed[target] +=
          static_cast<double>(alpha[i]) * static_cast<double>(alpha[i]) * squares[source] / static_cast<double>(pseudo);
    }
    return mixed;
  }

  // Variances of the H heads' scores to those of the mixed ones, each times the gain of the post-mix: heads' weights
  // are half alike and their errors are not, as in DifferenceGain. Its mean is what counts.
  absl::StatusOr<std::vector<double>> Talked(const std::string& layer, const std::vector<double>& scores) const {
    const size_t heads = scores.size();
    const int64_t square[] = {config_.num_heads, config_.num_heads};
    IHA_ASSIGN_OR_RETURN(const std::vector<float> pre, Read(layer + "self_attn.talking_heads.pre", square));
    IHA_ASSIGN_OR_RETURN(const std::vector<float> post, Read(layer + "self_attn.talking_heads.post", square));
    std::vector<double> mixed(heads), squares(heads), sums(heads);
    double gain = 0;
    for (size_t i = 0; i < pre.size(); i++) {  // [from][to]
      const double in = pre[i], out = post[i];
      mixed[i % heads] += in * in * scores[i / heads];
      squares[i % heads] += out * out;
      sums[i % heads] += out;
    }
    for (size_t c = 0; c < heads; c++) {
      if (squares[c] > 0) gain += 2 * squares[c] / (squares[c] + sums[c] * sums[c]) / static_cast<double>(heads);
    }
    for (double& variance : mixed) variance *= gain;
    return mixed;
  }

 private:
  static double SumOfSquares(const std::vector<float>& values) {
    double sum = 0;
    for (const float v : values) sum += static_cast<double>(v) * static_cast<double>(v);
    return sum;
  }
  absl::StatusOr<std::vector<float>> Read(const std::string& name, std::span<const int64_t> shape) const {
    IHA_ASSIGN_OR_RETURN(const checkpoint::TensorView view, checkpoint_.ExpectTensor(name, shape));
    std::vector<float> values(static_cast<size_t>(view.elements()));
    IHA_RETURN_IF_ERROR(checkpoint::WidenToF32(view, values));
    return values;
  }
  absl::StatusOr<double> OfNorm(const std::string& name) const {
    const int64_t shape[] = {config_.head_dim};
    IHA_ASSIGN_OR_RETURN(std::vector<float> g, Read(name, shape));
    if (config_.norm_plus_one) {
      for (float& v : g) v += 1;
    }
    return SumOfSquares(g);
  }

  const checkpoint::Checkpoint& checkpoint_;
  const ModelConfig& config_;
};

}  // namespace

absl::StatusOr<std::vector<double>> ScoreVariances(const checkpoint::Checkpoint& checkpoint) {
  const ModelConfig& config = checkpoint.config();
  const Lengths lengths(checkpoint);
  std::vector<double> variances;
  for (size_t layer = 0; layer < config.layers.size(); layer++) {
    const checkpoint::LayerSpec& spec = config.layers[layer];
    const std::string at = fmt::format("model.layers.{}.", layer);
    IHA_ASSIGN_OR_RETURN(std::vector<double> q, lengths.Of(at, "q", config.num_heads, spec));
    IHA_ASSIGN_OR_RETURN(std::vector<double> k, lengths.Of(at, "k", config.num_kv_heads, spec));
    if (spec.kind == AttentionKind::kIha) {
      IHA_ASSIGN_OR_RETURN(q, lengths.Mixed(at, "q", spec, q));
      IHA_ASSIGN_OR_RETURN(k, lengths.Mixed(at, "k", spec, k));
    }
    std::vector<double> scores(q.size());
    const double unit = config.attention_scale * config.attention_scale / static_cast<double>(config.head_dim);
    for (size_t head = 0; head < q.size(); head++) scores[head] = q[head] * k[head / (q.size() / k.size())] * unit;
    if (spec.kind == AttentionKind::kTalkingHeads) {
      IHA_ASSIGN_OR_RETURN(scores, lengths.Talked(at, scores));
    }
    double sum = 0;
    for (const double score : scores) sum += score;
    variances.push_back(sum / static_cast<double>(scores.size()));
  }
  return variances;
}

Bf16Errors Bf16ErrorsOf(const ModelConfig& config, std::span<const double> score_variances) {
  const double sandwich = config.sandwich_norms ? kNorm : 0;
  Bf16Errors errors;
  double stream = config.embedding_scale == 1.0 ? 1 : 2;  // the embedding
  double parts = 1;                                       // of equal size that the stream is the sum of
  const auto add = [&](double error) {
    parts += 1;
    stream = stream * (1 - 1 / parts) + (error + sandwich) / parts + 1;
  };
  for (size_t layer = 0; layer < config.layers.size(); layer++) {
    const double attention = AttentionError(config, config.layers[layer], score_variances[layer], stream);
    errors.attn_out.push_back(std::sqrt(attention * kRounding));
    add(attention);
    add(MlpError(config, stream));
  }
  errors.logits = std::sqrt((stream + kNorm + 1) * kRounding);  // logits are fp32
  return errors;
}

double Bf16Bound(double relative, std::span<const double> expected) {
  double squares = 0;
  for (const double value : expected) squares += value * value;
  return expected.empty() ? 0 : kBf16Deviations * relative * std::sqrt(squares / static_cast<double>(expected.size()));
}

}  // namespace iha::model
