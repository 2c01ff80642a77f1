// flop_audit.h: do two models cost the same? FLOP per token at given lengths, the difference and where it comes from.
//
// Everything that cost.h counts is counted, masks and edges as they are. Beside it stands the count by which the IHA
// paper calls its schedule equal to global attention (section 5.1, appendix C): H * (queries N P) * (keys W P) * d of a
// layer, no causal mask, in units of H N^2 d, mean over the layers; global layers are 1, its 4 : 1 hybrid is 3/5. Pure;
// thread: any.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/checkpoint/config.h"
#include "model/checkpoint/cost.h"

namespace iha::checkpoint {

// P * P * W / N with W = N without a window; a window of virtual tokens counts as it is: P * W / N.
double PaperUnits(const LayerSpec& layer, int64_t length);

struct AuditLength {
  int64_t length = 0;
  FlopsPerToken ours, theirs;
  double paper_ours = 0, paper_theirs = 0;
  double ratio() const { return ours.total() / theirs.total(); }
  double percent() const { return (ratio() - 1) * 100; }
};

// Layers at the same place in both models that are described by the same two texts.
struct AuditLayers {
  std::string ours, theirs;
  int64_t count = 0;
  std::vector<double> percent;  // share of the total difference, in percent of theirs; one for each length
};

struct FlopAudit {
  std::string directory, against;
  double tolerance = 0;  // percent
  std::vector<AuditLength> lengths;
  std::vector<AuditLayers> layers;  // pairs that differ; empty if the numbers of layers differ
  int64_t layers_ours = 0, layers_theirs = 0;
  bool Matched(const AuditLength& row) const;
  bool matched() const;
};

// lengths: each >= 1. The directories are for the output.
FlopAudit AuditFlops(const ModelConfig& ours, const ModelConfig& theirs, std::span<const int64_t> lengths);

// Lines for people, and one JSON object (docs/schemas/audit.schema.json).
std::string AuditText(const FlopAudit& audit);
std::string AuditJson(const FlopAudit& audit);

}  // namespace iha::checkpoint
