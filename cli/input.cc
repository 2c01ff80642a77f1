#include "cli/input.h"

#include <iostream>
#include <iterator>

#include "common/file.h"

namespace iha::cli {

absl::StatusOr<std::string> ReadInput(const std::string& path) {
  if (path != "-") return ReadFile(path);
  return std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
}

}  // namespace iha::cli
