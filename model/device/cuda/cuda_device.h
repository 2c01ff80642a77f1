// cuda_device.h: the GPUs of this host, and CUDA's errors as status. CUDA's runtime is linked in; of the host only the
// driver is needed, and looked for at the first call.
//
// Thread: any. Errors: Unavailable, one line with what was found and what to use instead.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/simt/target.h"

namespace iha::model {

// 9.0 is 90. Unavailable: `name` is no cuda or cuda:N, there is no such GPU or driver, or no kernel of this build runs
// on it.
struct CudaDevice {
  int index = 0;
  int architecture = 0;
  uint32_t max_shared_bytes = kernels::kGpuMaxSharedBytes;  // of a block that asks for it
};
absl::StatusOr<CudaDevice> FindCudaDevice(const std::string& name);

// What a GPU of this architecture is told: OK, or that the kernels are of others. `built` as "90a,100": a letter at
// the end is for that architecture alone, else for later ones of the same first number as well.
absl::Status CheckArchitecture(const std::string& name, int architecture, const std::string& built);

// What `--device NAME` is told when CUDA, asked for its devices, says `error`; `driver`: 13000 for 13.0, 0 for none.
absl::Status NoCudaDevice(const std::string& name, cudaError_t error, int driver);

// OK for cudaSuccess; ResourceExhausted for memory, else Internal: "what: text (name)".
absl::Status CudaStatus(cudaError_t error, const std::string& what);

}  // namespace iha::model
