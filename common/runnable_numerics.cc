#include "common/runnable_numerics.h"

#include "common/module_path.h"

namespace iha {

std::vector<NumericsSpec> RunnableNumerics(const std::string& torch) {
  std::vector<NumericsSpec> specs = {NumericsSpec{.backend = "fake"}};
  if (torch == kEmulatedBackend) return {EmulatedNumerics()};
  if (IsCudaExactName(torch)) return {CudaNumerics(torch)};
  if (!IsTorchCudaName(torch)) specs.insert(specs.end(), {NumericsSpec{}, NumericsSpec{.kv_dtype = "bf16"}});
  if (FindBackendModule("torch").ok()) {
    for (const char* kv : {"f32", "bf16"}) {
      specs.push_back({.backend = torch, .kv_dtype = kv});
      specs.push_back({.backend = torch, .weights_dtype = "bf16", .activation_dtype = "bf16", .kv_dtype = kv});
    }
  }
  return specs;
}

}  // namespace iha
