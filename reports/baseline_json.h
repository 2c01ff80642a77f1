// baseline_json.h: the baseline bundle (docs/formats.md, docs/schemas/baseline.schema.json): what a gate needs of a
// finished run, with its margins fixed, as one file that can be kept beside the code.
//
// Equal runs give equal bytes. Pure; thread: any. ParseBaseline: InvalidArgument, with the place, for anything that is
// not a bundle of this version (unknown fields, a value outside [0, 1], items out of order, a missing margin).
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "reports/gate_run.h"

namespace iha::reports {

// `run`: every metric has its margin (FixMargins by `rule`).
std::string RenderBaseline(const GateRun& run, const MarginRule& rule);

struct Baseline {
  GateRun run;
  MarginRule rule;  // by which its margins were fixed
};
// `where` begins messages: the file's name.
absl::StatusOr<Baseline> ParseBaseline(std::string_view text, std::string_view where);

}  // namespace iha::reports
