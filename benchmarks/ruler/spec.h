// spec.h: which cells of RULER a benchmark spec asks for: "ruler", "ruler@4096,8192", "ruler:vt,cwe@4096".
//
// Pure; thread: any. A cell's own name, as entries of a sweep have it, is that of ParseRulerCell: "ruler:vt@4096".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace iha::benchmarks::ruler {

inline constexpr int64_t kDefaultLength = 4096;
inline constexpr int64_t kMaxLength = int64_t{1} << 20;

// Whether a benchmark's name is one of these at all.
bool IsRulerName(std::string_view name);

// The names of the cells that `name` asks for, length by length, in the order of tasks.h: all tasks where it names
// none, kDefaultLength where it has no length. Idempotent. InvalidArgument: an unknown or repeated task, a length that
// is no number from 1 to kMaxLength or that is there twice.
absl::StatusOr<std::vector<std::string>> CellNames(const std::string& name);

}  // namespace iha::benchmarks::ruler
