#include "model/backend_module.h"

#include <dlfcn.h>

#include <cstdlib>

#include "common/errors.h"
#include "common/module_path.h"
#include "common/status_macros.h"

namespace iha::model {

// libgomp reads it when it is loaded, and from nowhere else.
void PrepareForBackendModules() { setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/0); }

absl::StatusOr<const BackendModule*> LoadBackendModule(const std::string& name) {
  IHA_RETURN_IF_ERROR(FindBackendModule(name));
  const std::string path = BackendModulePath(name);
  // Never closed: the libraries behind it register themselves in many places.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* why = dlerror();
    const char* const help = name == "cuda_fast"
                                 ? "build with -DIHA_TORCH_ROOT=<a LibTorch with all its CUDA libraries>, or use "
                                   "--numerics exact"
                                 : "./dev deps build installs what it needs";
    return Unavailable("{}: cannot be loaded ({}); {}", path, why == nullptr ? "no reason given" : why, help);
  }
  const auto* module = static_cast<const BackendModule*>(dlsym(library, "iha_backend_module"));
  if (module == nullptr || module->abi != kBackendModuleAbi) {
    return FailedPrecondition("{}: module version {}; expected {}; build or install all programs together", path,
                              module == nullptr ? 0 : module->abi, kBackendModuleAbi);
  }
  return module;
}

}  // namespace iha::model
