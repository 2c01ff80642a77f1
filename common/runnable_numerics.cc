#include "common/runnable_numerics.h"

#include "common/module_path.h"

namespace iha {

std::vector<NumericsSpec> RunnableNumerics(const std::string& device) {
  std::vector<NumericsSpec> specs = {NumericsSpec{.backend = "fake"}};
  const bool cpu = device == "cpu";
  if (cpu) specs.insert(specs.end(), {NumericsSpec{}, NumericsSpec{.kv_dtype = "bf16"}});
  if (FindBackendModule("torch").ok()) {
    const std::string backend = cpu ? "torch" : "torch-cuda";
    for (const char* kv : {"f32", "bf16"}) {
      specs.push_back({.backend = backend, .kv_dtype = kv});
      specs.push_back({.backend = backend, .weights_dtype = "bf16", .activation_dtype = "bf16", .kv_dtype = kv});
    }
  }
  return specs;
}

}  // namespace iha
