// input.h: whole inputs of commands: a file or "-" for stdin. Errors as common/file.h.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/errors.h"

namespace iha::cli {

absl::StatusOr<std::string> ReadInput(const std::string& path);

}  // namespace iha::cli
