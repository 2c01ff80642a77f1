// runnable_numerics.h: what a worker of this installation can run. Looks for backend modules, loads none. Thread: any.
#pragma once

#include <string>
#include <vector>

#include "common/eval_types.h"

namespace iha {

// `torch`: what LibTorch is called on the worker's device (TorchBackendName); on a GPU nothing else runs.
// kEmulatedBackend: of the emulated device. CudaExactName: of our kernels on the worker's GPU.
std::vector<NumericsSpec> RunnableNumerics(const std::string& torch);

}  // namespace iha
