#include "model/checkpoint/flop_audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "common/text.h"
#include "model/checkpoint/inspect.h"

namespace iha::checkpoint {
namespace {

using nlohmann::ordered_json;

struct PartRow {
  const char* name;
  double FlopsPerToken::*value;
};
constexpr PartRow kParts[] = {{"linear", &FlopsPerToken::linear},     {"mlp", &FlopsPerToken::mlp},
                              {"mix", &FlopsPerToken::mix},           {"scores", &FlopsPerToken::scores},
                              {"collapse", &FlopsPerToken::collapse}, {"head", &FlopsPerToken::head}};

double MeanPaperUnits(const ModelConfig& config, int64_t length) {
  double sum = 0;
  for (const LayerSpec& layer : config.layers) sum += PaperUnits(layer, length);
  return sum / static_cast<double>(config.layers.size());
}

// In percent of their total.
double PartPercent(const AuditLength& row, const PartRow& part) {
  return (row.ours.*part.value - row.theirs.*part.value) / row.theirs.total() * 100;
}

void AddLayers(const ModelConfig& ours, const ModelConfig& theirs, FlopAudit* audit) {
  for (size_t l = 0; l < ours.layers.size(); ++l) {
    AuditLayers pair{DescribeLayer(ours, ours.layers[l]), DescribeLayer(theirs, theirs.layers[l]), 0, {}};
    std::vector<double> percent;
    bool differs = false;
    for (const AuditLength& row : audit->lengths) {
      const double difference = LayerFlops(ours, ours.layers[l], row.length).total() -
                                LayerFlops(theirs, theirs.layers[l], row.length).total();
      percent.push_back(difference / row.theirs.total() * 100);
      differs = differs || difference != 0;
    }
    if (!differs) continue;
    auto found = std::find_if(audit->layers.begin(), audit->layers.end(), [&](const AuditLayers& other) {
      return other.ours == pair.ours && other.theirs == pair.theirs;
    });
    if (found == audit->layers.end()) {
      pair.percent.assign(percent.size(), 0);
      found = audit->layers.insert(found, std::move(pair));
    }
    found->count++;
    for (size_t i = 0; i < percent.size(); ++i) found->percent[i] += percent[i];
  }
}

std::string LengthText(const FlopAudit& audit, const AuditLength& row, size_t index) {
  std::string text = fmt::format("length {}: {:.3f} MFLOP against {:.3f}, ratio {:.4f}, {:+.2f} %{}\n", row.length,
                                 row.ours.total() / 1e6, row.theirs.total() / 1e6, row.ratio(), row.percent(),
                                 audit.Matched(row) ? "" : "  NOT MATCHED");
  std::string parts;
  for (const PartRow& part : kParts) {
    const double percent = PartPercent(row, part);
    if (row.ours.*part.value == row.theirs.*part.value) continue;
    parts += fmt::format("{}{} {:+.2f}", parts.empty() ? "" : ", ", part.name, percent);
  }
  if (!parts.empty()) text += fmt::format("  by part, in % of the second: {}\n", parts);
  for (const AuditLayers& pair : audit.layers) {
    text += fmt::format("  {} x {} against {}: {:+.2f}\n", pair.count, pair.ours, pair.theirs, pair.percent[index]);
  }
  text += fmt::format("  attention by the paper's count: {:.4g} against {:.4g} x H N^2 d a layer\n", row.paper_ours,
                      row.paper_theirs);
  return text;
}

ordered_json PartsJson(const FlopsPerToken& flops) {
  ordered_json json;
  for (const PartRow& part : kParts) json[part.name] = flops.*part.value;
  return json;
}

}  // namespace

double PaperUnits(const LayerSpec& layer, int64_t length) {
  const double n = static_cast<double>(length);
  const double p = layer.kind == AttentionKind::kIha ? static_cast<double>(layer.pseudo_heads) : 1;
  if (!layer.window.has_value()) return p * p;
  const double size = static_cast<double>(layer.window->size);
  if (layer.window->unit == WindowUnit::kVirtual) return p * std::min(size, n * p) / n;
  return p * p * std::min(size, n) / n;
}

bool FlopAudit::Matched(const AuditLength& row) const { return std::abs(row.percent()) <= tolerance; }
bool FlopAudit::matched() const {
  return std::all_of(lengths.begin(), lengths.end(), [this](const AuditLength& row) { return Matched(row); });
}

FlopAudit AuditFlops(const ModelConfig& ours, const ModelConfig& theirs, std::span<const int64_t> lengths) {
  FlopAudit audit;
  audit.layers_ours = ours.num_layers();
  audit.layers_theirs = theirs.num_layers();
  for (const int64_t length : lengths) {
    audit.lengths.push_back({length, ModelFlops(ours, length), ModelFlops(theirs, length), MeanPaperUnits(ours, length),
                             MeanPaperUnits(theirs, length)});
  }
  if (ours.layers.size() == theirs.layers.size()) AddLayers(ours, theirs, &audit);
  return audit;
}

std::string AuditText(const FlopAudit& audit) {
  std::string text = fmt::format("FLOP per token, {} against {}, tolerance {} %\n", TerminalSafe(audit.directory),
                                 TerminalSafe(audit.against), audit.tolerance);
  if (audit.layers_ours != audit.layers_theirs) {
    text += fmt::format("{} layers against {}\n", audit.layers_ours, audit.layers_theirs);
  }
  for (size_t i = 0; i < audit.lengths.size(); ++i) text += LengthText(audit, audit.lengths[i], i);
  return text;
}

std::string AuditJson(const FlopAudit& audit) {
  ordered_json json = {
      {"directory", audit.directory}, {"against", audit.against}, {"tolerance_percent", audit.tolerance}};
  json["lengths"] = ordered_json::array();
  for (size_t i = 0; i < audit.lengths.size(); ++i) {
    const AuditLength& row = audit.lengths[i];
    ordered_json by_part, by_layers = ordered_json::array();
    for (const PartRow& part : kParts) by_part[part.name] = PartPercent(row, part);
    for (const AuditLayers& pair : audit.layers) {
      by_layers.push_back(
          {{"layer", pair.ours}, {"against", pair.theirs}, {"layers", pair.count}, {"percent", pair.percent[i]}});
    }
    json["lengths"].push_back({{"length", row.length},
                               {"flops_per_token", row.ours.total()},
                               {"against_flops_per_token", row.theirs.total()},
                               {"parts", PartsJson(row.ours)},
                               {"against_parts", PartsJson(row.theirs)},
                               {"ratio", row.ratio()},
                               {"percent", row.percent()},
                               {"percent_by_part", by_part},
                               {"percent_by_layers", by_layers},
                               {"paper_units", row.paper_ours},
                               {"against_paper_units", row.paper_theirs},
                               {"matched", audit.Matched(row)}});
  }
  json["matched"] = audit.matched();
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace iha::checkpoint
