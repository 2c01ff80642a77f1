// local_device.h: this host: its GPU as numerics ids name it, and what its CPU can do. Blocking (a second); thread:
// any.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/numerics_spec.h"
#include "common/telemetry.h"

namespace iha::cli {

// "torch-cuda-sm_90", "cuda-exact-sm_90" or "cuda-fast-sm_90" of `device`, whichever kind `numerics` are, from
// iha-tool in `program_folder`: neither LibTorch nor CUDA is loaded into this process. Unavailable: no such device or
// build; the message is the tool's.
absl::StatusOr<std::string> LocalCudaBackend(const std::string& program_folder, const NumericsSpec& numerics,
                                             const std::string& device);

// Measured by iha-tool, which has the kernels. Unavailable: it could not; the message is the tool's.
absl::StatusOr<MachinePeak> LocalMachinePeak(const std::string& program_folder, int threads);

// Of iha-tool, and so of the workers that lie beside it. Unavailable likewise.
absl::StatusOr<EngineBuild> LocalEngineBuild(const std::string& program_folder);

}  // namespace iha::cli
