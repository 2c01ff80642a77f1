// runnable_numerics.h: what a worker of this installation can run. Looks for backend modules, loads none. Thread: any.
#pragma once

#include <string>
#include <vector>

#include "common/eval_types.h"

namespace iha {

// `device_backend`: TorchBackendName's (LibTorch on the worker's device; that of the CPU stands for all that runs
// there), kEmulatedBackend, or CudaExactName's or CudaFastName's (our kernels on the worker's GPU).
std::vector<NumericsSpec> RunnableNumerics(const std::string& device_backend);

}  // namespace iha
