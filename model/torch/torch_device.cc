#include "model/torch/torch_device.h"

#include <ATen/ATen.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>

#include "common/errors.h"
#include "common/numerics_spec.h"
#include "common/status_macros.h"

namespace iha::model::torch {
namespace {

// The CPU part alone is linked: hosts without CUDA have no libtorch_cuda.so. Loading it registers its kernels.
absl::Status LoadCuda(const std::string& device) {
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE) != nullptr) return absl::OkStatus();
  const char* why = dlerror();
  return Unavailable(
      "--device {}: LibTorch's CUDA part cannot be loaded ({}); use --device cpu, or build with "
      "-DIHA_TORCH_ROOT=<a LibTorch with CUDA>",
      device, why == nullptr ? "no reason given" : why);
}

}  // namespace

absl::StatusOr<c10::Device> FindDevice(const std::string& name) {
  if (name == "cpu") return c10::Device(c10::kCPU);
  const std::optional<int> named = CudaIndexOf(name);
  if (!named.has_value()) return Unavailable("--device {}: expected cpu, cuda or cuda:N for the torch backend", name);
  const int index = *named;
  IHA_RETURN_IF_ERROR(LoadCuda(name));
  const int count = at::globalContext().hasCUDA() ? static_cast<int>(at::detail::getCUDAHooks().getNumGPUs()) : 0;
  if (index >= count) return Unavailable("--device {}: this host has {} CUDA devices", name, count);
  return c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index));
}

absl::StatusOr<int> ArchitectureOf(c10::Device device) {
  if (!device.is_cuda()) return 0;
  // Of the CUDA runtime that came with LibTorch's CUDA part; its headers are on few hosts.
  constexpr int kMajor = 75, kMinor = 76;  // cudaDevAttrComputeCapability...
  const auto attribute =
      reinterpret_cast<int (*)(int* value, int attribute, int device)>(dlsym(RTLD_DEFAULT, "cudaDeviceGetAttribute"));
  int major = 0, minor = 0;
  if (attribute == nullptr || attribute(&major, kMajor, device.index()) != 0 ||
      attribute(&minor, kMinor, device.index()) != 0) {
    return Unavailable("--device cuda:{}: the CUDA runtime does not say the GPU's architecture", device.index());
  }
  return 10 * major + minor;
}

}  // namespace iha::model::torch
