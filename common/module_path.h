// module_path.h: where what belongs to the running program lies: other programs in its folder, backends that are loaded
// on demand in ../lib/iha-eval/ from there, in the build folder and after an install alike. Reads /proc and the file
// system; thread: any.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace iha {

// The folder of the running program.
std::string ProgramFolder();
// "/opt/iha/lib/iha-eval/libiha_torch_backend.so" for "torch"; the file need not exist.
std::string BackendModulePath(const std::string& name);
// Unavailable with one line when this installation lacks the module. Loads nothing.
absl::Status FindBackendModule(const std::string& name);

}  // namespace iha
