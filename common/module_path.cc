#include "common/module_path.h"

#include <filesystem>

#include "common/errors.h"

namespace iha {

std::string ProgramFolder() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "." : self.parent_path().string();
}

std::string BackendModulePath(const std::string& name) {
  const auto root = std::filesystem::path(ProgramFolder()).parent_path();
  return (root / "lib" / "iha-eval" / fmt::format("libiha_{}_backend.so", name)).string();
}

absl::Status FindBackendModule(const std::string& name) {
  const std::string path = BackendModulePath(name);
  std::error_code error;
  if (std::filesystem::exists(path, error)) return absl::OkStatus();
  const char* const build = name == "cuda" ? "./dev build where nvcc is on PATH" : "./dev deps build, then build again";
  return Unavailable("{}: not found; this build has no {} backend ({})", path, name, build);
}

}  // namespace iha
