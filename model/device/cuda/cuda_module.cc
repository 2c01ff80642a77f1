// The CUDA modules (model/backend_module.h): our kernels as nvcc compiled them, the forward pass over them, CUDA's
// runtime; with IHA_CUDA_FAST, for numerics `fast`, also LibTorch's products and attention.
#include "common/errors.h"
#include "common/numerics_spec.h"
#include "common/status_macros.h"
#include "model/backend_module.h"
#include "model/device/cuda/cuda_runtime.h"
#include "model/device/device_backend.h"
#ifdef IHA_CUDA_FAST
#include "model/device/cuda/torch_fast.h"
#endif

namespace iha::model {
namespace {

#ifdef IHA_CUDA_FAST
constexpr auto kBackendName = CudaFastName;
const MakeCudaFast kFast = MakeTorchFast;
#else
constexpr auto kBackendName = CudaExactName;
const MakeCudaFast kFast;
#endif

absl::StatusOr<int> Architecture(const std::string& device) {
  IHA_ASSIGN_OR_RETURN(const CudaDevice found, FindCudaDevice(device));
  return found.architecture;
}

absl::StatusOr<std::unique_ptr<Backend>> Open(const BackendRequest& request) {
  IHA_ASSIGN_OR_RETURN(const CudaDevice device, FindCudaDevice(request.device));
  if (const std::string here = kBackendName(device.architecture); request.numerics.backend != here) {
    return FailedPrecondition("--device {}: runs {}; numerics {} are of another backend", request.device, here,
                              request.numerics.Id());
  }
  IHA_ASSIGN_OR_RETURN(std::unique_ptr<DeviceRuntime> runtime, MakeCudaRuntime(device, kFast));
  return OpenDeviceBackend(*request.checkpoint, request.numerics, std::move(runtime), {.profile = request.profile});
}

}  // namespace
}  // namespace iha::model

extern "C" {
// The symbol that LoadBackendModule looks up; the only one that the module shows.
extern const iha::model::BackendModule iha_backend_module __attribute__((visibility("default")));
const iha::model::BackendModule iha_backend_module = {
    .abi = iha::model::kBackendModuleAbi, .architecture = iha::model::Architecture, .open = iha::model::Open};
}
