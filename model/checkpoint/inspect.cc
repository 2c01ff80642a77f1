#include "model/checkpoint/inspect.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "common/text.h"

namespace iha::checkpoint {
namespace {

using nlohmann::ordered_json;

std::string WindowText(const Window& window) {
  return fmt::format(" window {} {}tokens", window.size, window.unit == WindowUnit::kVirtual ? "virtual " : "");
}

// 134515008 -> "134,515,008"
std::string Grouped(int64_t value) {
  const std::string digits = std::to_string(value);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string Mega(double flops) { return fmt::format("{:.3f}", flops / 1e6); }

// Runs of equal layers on one line.
std::string LayerLines(const std::vector<std::string>& layers) {
  std::string text;
  for (size_t begin = 0; begin < layers.size();) {
    size_t end = begin;
    while (end < layers.size() && layers[end] == layers[begin]) ++end;
    const std::string range = end - begin == 1 ? fmt::format("{}", begin) : fmt::format("{}-{}", begin, end - 1);
    text += fmt::format("layer {}: {}\n", range, layers[begin]);
    begin = end;
  }
  return text;
}

ordered_json FlopsJson(const LengthCost& cost) {
  return {{"length", cost.length},   {"linear", cost.flops.linear}, {"mlp", cost.flops.mlp},
          {"mix", cost.flops.mix},   {"scores", cost.flops.scores}, {"collapse", cost.flops.collapse},
          {"head", cost.flops.head}, {"total", cost.flops.total()}};
}

// NaNs and infinities: a diverged training run, or a faulty conversion.
int64_t CountNonFinite(const TensorView& view) {
  std::vector<float> piece;
  int64_t count = 0;
  constexpr size_t kPiece = size_t{1} << 16;
  const auto item = static_cast<size_t>(SizeOf(view.dtype));
  for (size_t begin = 0; begin < view.bytes.size(); begin += kPiece * item) {
    TensorView part{view.dtype, {}, view.bytes.subspan(begin, std::min(kPiece * item, view.bytes.size() - begin))};
    piece.resize(part.bytes.size() / item);
    if (!WidenToF32(part, piece).ok()) return 0;  // a float dtype: Open has checked
    for (const float value : piece) count += std::isfinite(value) ? 0 : 1;
  }
  return count;
}

}  // namespace

std::string DescribeLayer(const ModelConfig& config, const LayerSpec& layer) {
  std::string text = NameOf(layer.kind);
  if (layer.kind == AttentionKind::kIha) {
    text += fmt::format(" P={} {} {} positions {}", layer.pseudo_heads, NameOf(layer.collapse),
                        layer.mask == IhaMask::kFlatCausal ? "flat_causal" : "token_causal",
                        layer.rope_positions == IhaPositions::kVirtual ? "virtual" : "token");
  }
  if (layer.window.has_value()) text += WindowText(*layer.window);
  if (layer.kind == AttentionKind::kDiff) text += fmt::format(" lambda_init {:.6g}", layer.lambda_init);
  const RopeSpec& rope = config.ropes[static_cast<size_t>(layer.rope)];
  text += fmt::format(", rope {} theta {:.10g}", layer.rope_pairing == RopePairing::kHalf ? "half" : "interleaved",
                      rope.theta);
  if (rope.scaling != RopeScaling::kNone) text += fmt::format(" {} x{:.6g}", NameOf(rope.scaling), rope.factor);
  if (layer.qk_norm != QkNorm::kNone) text += fmt::format(", qk_norm {}", NameOf(layer.qk_norm));
  if (layer.xsa != Xsa::kOff) text += layer.xsa == Xsa::kPseudo ? ", xsa pseudo" : ", xsa output";
  if (layer.gate != Gate::kOff) text += layer.gate == Gate::kHeadwise ? ", gate headwise" : ", gate elementwise";
  if (layer.knocking != Knocking::kOff) {
    text += layer.knocking == Knocking::kLinear ? ", knocking linear" : ", knocking mlp";
  }
  return text;
}

Inspection Inspect(const Checkpoint& checkpoint, std::span<const int64_t> lengths) {
  const ModelConfig& config = checkpoint.config();
  Inspection result;
  result.directory = checkpoint.directory();
  result.family = config.has_iha_eval ? fmt::format("{} + iha_eval", NameOf(config.family)) : NameOf(config.family);
  for (const LayerSpec& layer : config.layers) result.layers.push_back(DescribeLayer(config, layer));
  result.vocab_size = config.vocab_size;
  result.hidden_size = config.hidden_size;
  result.num_heads = config.num_heads;
  result.num_kv_heads = config.num_kv_heads;
  result.head_dim = config.head_dim;
  result.context_tokens = config.context_tokens;
  result.parameters = CountParameters(config);
  result.generation_settings = checkpoint.generation().ignored;
  result.warnings = checkpoint.warnings();
  for (const TensorSpec& spec : RequiredTensors(config)) {
    const TensorView& view = checkpoint.tensors().find(spec.name)->second;  // Open has checked that it is there
    result.dtypes[NameOf(view.dtype)] += view.elements();
    if (const int64_t count = CountNonFinite(view); count > 0) {
      result.warnings.push_back(fmt::format("tensor {} holds {} values that are NaN or infinite", spec.name, count));
    }
  }
  result.digest = checkpoint.WeightsDigest();
  for (const int64_t length : lengths) {
    result.costs.push_back({length, ModelFlops(config, length), KvNumbersOfSequence(config, length)});
  }
  result.kv_numbers = KvNumbersPerToken(config);
  result.kv_numbers_base = KvNumbersPerToken(config, IhaCacheForm::kBase);
  result.kv_numbers_mixed = KvNumbersPerToken(config, IhaCacheForm::kMixed);
  return result;
}

std::string InspectionText(const Inspection& inspection) {
  const ParameterCount& parameters = inspection.parameters;
  std::string text = fmt::format("checkpoint: {}\nfamily: {}\n", TerminalSafe(inspection.directory), inspection.family);
  text += fmt::format("shape: {} layers, hidden {}, {} heads ({} key heads) of {}, vocabulary {}, context {}\n",
                      inspection.layers.size(), inspection.hidden_size, inspection.num_heads, inspection.num_kv_heads,
                      inspection.head_dim, inspection.vocab_size, inspection.context_tokens);
  text += LayerLines(inspection.layers);
  text += fmt::format("parameters: {} (embedding {}, attention {}, mlp {}, norms {}, head {})\n",
                      Grouped(parameters.total()), Grouped(parameters.embedding), Grouped(parameters.attention),
                      Grouped(parameters.mlp), Grouped(parameters.norms),
                      parameters.head == 0 ? "tied" : Grouped(parameters.head));
  for (const auto& [dtype, weights] : inspection.dtypes) {
    text += fmt::format("stored as {}: {} weights\n", dtype, Grouped(weights));
  }
  text += fmt::format("digest: {}\n", inspection.digest.Hex());
  for (const LengthCost& cost : inspection.costs) {
    const FlopsPerToken& flops = cost.flops;
    const char* note = cost.length == inspection.context_tokens  ? ", the context"
                       : cost.length > inspection.context_tokens ? ", beyond the context"
                                                                 : "";
    text +=
        fmt::format("MFLOP per token at {} tokens{}: {} (linear {}, mlp {}, mix {}, scores {}, collapse {}, head {})\n",
                    cost.length, note, Mega(flops.total()), Mega(flops.linear), Mega(flops.mlp), Mega(flops.mix),
                    Mega(flops.scores), Mega(flops.collapse), Mega(flops.head));
  }
  text += fmt::format("KV bytes per token: {} (f32), {} (bf16)\n", Grouped(inspection.kv_numbers * 4),
                      Grouped(inspection.kv_numbers * 2));
  for (const LengthCost& cost : inspection.costs) {
    if (cost.kv_numbers == inspection.kv_numbers * cost.length) continue;
    text += fmt::format("KV bytes of {} tokens, windows keeping their last: {} (f32), {} (bf16)\n", cost.length,
                        Grouped(cost.kv_numbers * 4), Grouped(cost.kv_numbers * 2));
  }
  if (inspection.kv_numbers_mixed != inspection.kv_numbers_base) {
    text += fmt::format("KV bytes per token (f32) by form of iha caches: base {}, mixed {}, chosen {}\n",
                        Grouped(inspection.kv_numbers_base * 4), Grouped(inspection.kv_numbers_mixed * 4),
                        Grouped(inspection.kv_numbers * 4));
  }
  if (!inspection.generation_settings.empty()) {
    text += fmt::format("generation_config.json says, and a sweep decides itself: {}\n",
                        fmt::join(inspection.generation_settings, ", "));
  }
  for (const std::string& warning : inspection.warnings) text += fmt::format("warning: {}\n", warning);
  return text;
}

std::string InspectionJson(const Inspection& inspection) {
  const ParameterCount& parameters = inspection.parameters;
  ordered_json result;
  result["directory"] = inspection.directory;
  result["family"] = inspection.family;
  result["layers"] = inspection.layers;
  result["vocab_size"] = inspection.vocab_size;
  result["hidden_size"] = inspection.hidden_size;
  result["num_attention_heads"] = inspection.num_heads;
  result["num_key_value_heads"] = inspection.num_kv_heads;
  result["head_dim"] = inspection.head_dim;
  result["context_tokens"] = inspection.context_tokens;
  result["parameters"] = {
      {"embedding", parameters.embedding}, {"attention", parameters.attention}, {"mlp", parameters.mlp},
      {"norms", parameters.norms},         {"head", parameters.head},           {"total", parameters.total()}};
  result["dtypes"] = inspection.dtypes;
  result["digest"] = inspection.digest.Hex();
  result["flops_per_token"] = ordered_json::array();
  for (const LengthCost& cost : inspection.costs) result["flops_per_token"].push_back(FlopsJson(cost));
  result["kv_bytes_per_token"] = {{"f32", inspection.kv_numbers * 4},
                                  {"bf16", inspection.kv_numbers * 2},
                                  {"f32_base", inspection.kv_numbers_base * 4},
                                  {"bf16_base", inspection.kv_numbers_base * 2},
                                  {"f32_mixed", inspection.kv_numbers_mixed * 4},
                                  {"bf16_mixed", inspection.kv_numbers_mixed * 2}};
  result["kv_bytes_of_sequence"] = ordered_json::array();
  for (const LengthCost& cost : inspection.costs) {
    result["kv_bytes_of_sequence"].push_back(
        {{"length", cost.length}, {"f32", cost.kv_numbers * 4}, {"bf16", cost.kv_numbers * 2}});
  }
  result["generation_settings"] = inspection.generation_settings;
  result["warnings"] = inspection.warnings;
  return result.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace iha::checkpoint
