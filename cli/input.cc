#include "cli/input.h"

#include <iostream>
#include <vector>

namespace iha::cli {

absl::StatusOr<std::string> ReadInput(const std::string& path, int64_t max_bytes) {
  if (path != "-") return ReadFile(path, max_bytes);
  std::string text;
  std::vector<char> chunk(1 << 16);
  while (std::cin.read(chunk.data(), static_cast<std::streamsize>(chunk.size())), std::cin.gcount() > 0) {
    text.append(chunk.data(), static_cast<size_t>(std::cin.gcount()));
    if (static_cast<int64_t>(text.size()) > max_bytes) {
      return InvalidArgument("stdin: has more than {} bytes, which is the most that is expected here", max_bytes);
    }
  }
  return text;
}

}  // namespace iha::cli
