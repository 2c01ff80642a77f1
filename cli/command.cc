#include "cli/command.h"

#include <iostream>

#include "common/errors.h"
#include "common/text.h"

namespace iha::cli {

int Fail(std::string_view command, const absl::Status& status) {
  const absl::string_view text = status.message();
  constexpr size_t kMostBytes = 4096;  // it may quote what it was given
  std::cerr << "iha-eval " << command << ": " << TerminalSafe({text.data(), text.size()}, kMostBytes) << "\n";
  return ExitCodeFor(status);
}

int FailUsage(std::string_view command, const absl::Status& status) {
  Fail(command, status);
  return kExitUsage;
}

}  // namespace iha::cli
