// ruler_notes.h: what a reader of RULER's columns must be told. Pure; thread: any.
#pragma once

#include <string>
#include <vector>

#include "reports/table.h"

namespace iha::reports {

// Cells of a generated haystack, cells beyond the model's context, and for each model, once for all columns, how many
// items exceed their length (special tokens, which NVIDIA's counts leave out) and how many samples ended at their limit
// (nothing else stops a model that goes on talking).
std::vector<std::string> RulerNotes(const Table& table);

}  // namespace iha::reports
