// module_path.h: where the backends that are loaded on demand lie: ../lib/iha-eval/ from the running program's folder,
// in the build folder and after an install alike. Reads /proc and the file system; thread: any.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace iha {

// "/opt/iha/lib/iha-eval/libiha_torch_backend.so" for "torch"; the file need not exist.
std::string BackendModulePath(const std::string& name);
// Unavailable with one line when this installation lacks the module. Loads nothing.
absl::Status FindBackendModule(const std::string& name);

}  // namespace iha
