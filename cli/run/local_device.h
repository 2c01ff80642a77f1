// local_device.h: the GPU of this host, as numerics ids name it. Blocking (a second); thread: any.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace iha::cli {

// "torch-cuda-sm_90" of device "cuda", from iha-tool in `program_folder`: LibTorch is not loaded into this process.
// Unavailable: no such device or build; the message is the tool's.
absl::StatusOr<std::string> LocalCudaBackend(const std::string& program_folder);

}  // namespace iha::cli
