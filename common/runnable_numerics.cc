#include "common/runnable_numerics.h"

#include "common/module_path.h"

namespace iha {

std::vector<NumericsSpec> RunnableNumerics(const std::string& device_backend) {
  if (device_backend == kEmulatedBackend) return {EmulatedNumerics(), EmulatedFastNumerics()};
  if (IsCudaExactName(device_backend) || IsCudaFastName(device_backend)) return {CudaNumerics(device_backend)};
  std::vector<NumericsSpec> specs = {NumericsSpec{.backend = "fake"}};
  if (!IsTorchCudaName(device_backend)) specs.insert(specs.end(), {NumericsSpec{}, NumericsSpec{.kv_dtype = "bf16"}});
  if (FindBackendModule("torch").ok()) {
    for (const char* kv : {"f32", "bf16"}) {
      specs.push_back({.backend = device_backend, .kv_dtype = kv});
      specs.push_back({.backend = device_backend, .weights_dtype = "bf16", .activation_dtype = "bf16", .kv_dtype = kv});
    }
  }
  return specs;
}

}  // namespace iha
