// The CUDA module (model/backend_module.h): our kernels as nvcc compiled them, the forward pass over them, CUDA's
// runtime.
#include "common/errors.h"
#include "common/numerics_spec.h"
#include "common/status_macros.h"
#include "model/backend_module.h"
#include "model/device/cuda/cuda_runtime.h"
#include "model/device/device_backend.h"

namespace iha::model {
namespace {

absl::StatusOr<int> Architecture(const std::string& device) {
  IHA_ASSIGN_OR_RETURN(const CudaDevice found, FindCudaDevice(device));
  return found.architecture;
}

absl::StatusOr<std::unique_ptr<Backend>> Open(const BackendRequest& request) {
  IHA_ASSIGN_OR_RETURN(const CudaDevice device, FindCudaDevice(request.device));
  if (const std::string here = CudaExactName(device.architecture); request.numerics.backend != here) {
    return FailedPrecondition("--device {}: runs {}; numerics {} are of another backend", request.device, here,
                              request.numerics.Id());
  }
  IHA_ASSIGN_OR_RETURN(std::unique_ptr<DeviceRuntime> runtime, MakeCudaRuntime(device));
  return OpenDeviceBackend(*request.checkpoint, request.numerics, std::move(runtime));
}

}  // namespace
}  // namespace iha::model

extern "C" {
// The symbol that LoadBackendModule looks up; the only one that the module shows.
extern const iha::model::BackendModule iha_backend_module __attribute__((visibility("default")));
const iha::model::BackendModule iha_backend_module = {
    .abi = iha::model::kBackendModuleAbi, .architecture = iha::model::Architecture, .open = iha::model::Open};
}
