// spec_notes.h: what of a sweep will come out empty, or says nothing new: told before hours of work, not after them.
//
// One line each, without a line's end; what they quote may come from outside. Notes, not errors: the rest of the sweep
// is worth having. Thread: any.
#pragma once

#include <string>
#include <vector>

#include "common/eval_types.h"

namespace iha::cli {

// Samples that are all equal; pass@k and maj@k of fewer than k samples. `spec`: all defaults filled in. Pure.
std::vector<std::string> NotesOn(const SweepSpec& spec);

// Metrics whose graders can't be run with `libraries` (a folder, "" = none). Blocking: asks each once, in a child
// process, if there is a folder.
std::vector<std::string> GraderNotes(const SweepSpec& spec, const std::string& libraries);

}  // namespace iha::cli
