// nearest.h: what the user probably meant. Pure; names are untrusted and come back escaped for a terminal.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace iha {

// Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment), of bytes.
int EditDistance(std::string_view a, std::string_view b);

// The known name closest to `name` if close enough to be a typo of it (at most max(1, length / 3) edits), the first
// such in order of `known`.
std::optional<std::string> NearestName(std::string_view name, std::span<const std::string> known);

// InvalidArgument: unknown WHAT "NAME" (did you mean "X"?), or the known names when none is near
// ("it takes none" where there are none).
absl::Status UnknownName(std::string_view what, std::string_view name, std::span<const std::string> known);

}  // namespace iha
