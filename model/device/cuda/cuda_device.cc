#include "model/device/cuda/cuda_device.h"

#include <algorithm>
#include <charconv>

#include "common/errors.h"
#include "common/numerics_spec.h"

namespace iha::model {
namespace {

std::string Version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

}  // namespace

absl::Status CheckArchitecture(const std::string& name, int architecture, const std::string& built) {
  for (size_t at = 0; at < built.size();) {
    const size_t end = std::min(built.find(',', at), built.size());
    int sm = 0;
    const auto [stop, error] = std::from_chars(built.data() + at, built.data() + end, sm);
    const bool alone = stop != built.data() + end;
    const bool later = !alone && architecture / 10 == sm / 10 && architecture > sm;
    if (error == std::errc() && (architecture == sm || later)) return absl::OkStatus();
    at = end + 1;
  }
  return Unavailable(
      "--device {}: a GPU of compute capability {}.{}; this build has kernels for {}; configure it with "
      "-DIHA_CUDA_ARCHITECTURES={}, or use --device cpu",
      name, architecture / 10, architecture % 10, built, architecture);
}

absl::Status NoCudaDevice(const std::string& name, cudaError_t error, int driver) {
  const std::string found = driver == 0 ? std::string("no NVIDIA driver") : "a driver for CUDA " + Version(driver);
  return Unavailable("--device {}: found {} ({}); expected a GPU and a driver for CUDA {} or later; use --device cpu",
                     name, found, cudaGetErrorString(error), Version(CUDART_VERSION));
}

absl::StatusOr<CudaDevice> FindCudaDevice(const std::string& name) {
  const std::optional<int> index = CudaIndexOf(name);
  if (!index.has_value()) return Unavailable("--device {}: no such device; expected cuda or cuda:N", name);
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    int driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
    return NoCudaDevice(name, error, driver);
  }
  if (*index >= count) {
    return Unavailable("--device {}: found {} GPUs; expected cuda:N with N below that", name, count);
  }
  int major = 0, minor = 0, shared = 0;
  for (const auto& [value, attribute] :
       {std::pair{&major, cudaDevAttrComputeCapabilityMajor}, std::pair{&minor, cudaDevAttrComputeCapabilityMinor},
        std::pair{&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin}}) {
    if (const cudaError_t error = cudaDeviceGetAttribute(value, attribute, *index); error != cudaSuccess) {
      return Unavailable("--device {}: its properties cannot be read: {}", name, cudaGetErrorString(error));
    }
  }
  const CudaDevice device{
      .index = *index, .architecture = 10 * major + minor, .max_shared_bytes = static_cast<uint32_t>(shared)};
  const absl::Status built = CheckArchitecture(name, device.architecture, IHA_CUDA_ARCHITECTURES);
  if (!built.ok()) return built;
  return device;
}

absl::Status CudaStatus(cudaError_t error, const std::string& what) {
  if (error == cudaSuccess) return absl::OkStatus();
  if (error == cudaErrorMemoryAllocation) return ResourceExhausted("{}: {}", what, cudaGetErrorString(error));
  return Internal("{}: {} ({})", what, cudaGetErrorString(error), cudaGetErrorName(error));
}

}  // namespace iha::model
