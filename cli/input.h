// input.h: whole inputs of commands: a file or "-" for stdin. Errors as common/file.h.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/errors.h"
#include "common/file.h"

namespace iha::cli {

// A sweep.json with the most models and entries that a planner takes has less.
inline constexpr int64_t kMaxSweepBytes = int64_t{16} << 20;

absl::StatusOr<std::string> ReadInput(const std::string& path, int64_t max_bytes = kMaxTextFileBytes);

}  // namespace iha::cli
