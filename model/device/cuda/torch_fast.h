// torch_fast.h: LibTorch's products (cuBLASLt) and attention (cuDNN) for numerics `fast` on a GPU.
//
// Products: bf16 in, fp32 sums in whatever order cuBLASLt's heuristic takes for the shape, no intermediate rounding to
// bf16. Attention: where cuDNN takes the shape, else nothing. Works in the given stream, which must outlive it; its
// scratch, and with it the runtime's memory, comes from LibTorch's caching allocator (torch_memory.h). Thread: the
// runtime's. Errors: Internal (LibTorch's line), ResourceExhausted.
#pragma once

#include "absl/status/statusor.h"
#include "model/device/cuda/cuda_runtime.h"

namespace iha::model {

absl::StatusOr<CudaFast> MakeTorchFast(const CudaDevice& device, cudaStream_t stream);

}  // namespace iha::model
