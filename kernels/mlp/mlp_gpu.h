// mlp_gpu.h: the gated activation on the device, bf16 rows: out = bf16(act(gate) * up), in fp32.
//
// Activations as in mlp.h; exponentials are 2^x of the device, erf is that of the math library: relative error of the
// product below 2^-17 before rounding (kGeluErf: 2^-17 of |gate up|, where Phi is small). An infinite or NaN gate or up
// gives what the formula gives in fp32. up may be null: out = act(gate). out may be gate or up. n and the strides are
// multiples of 8. Reads and writes each element once. Returns before it is done (target.h); status 1 for a shape
// outside of these.
#pragma once

#include <cstdint>

#include "kernels/mlp/mlp.h"
#include "kernels/simt/target.h"

namespace iha::kernels {

struct MlpGpuArgs {
  const uint16_t* gate = nullptr;
  const uint16_t* up = nullptr;
  uint16_t* out = nullptr;
  uint32_t rows = 0;
  uint32_t n = 0;
  uint32_t ld_gate = 0;  // elements between rows
  uint32_t ld_up = 0;
  uint32_t ld_out = 0;
  Activation activation = Activation::kSilu;
};

GpuStatus ActivationMulGpu(const MlpGpuArgs& args, GpuStream stream);
// Its kernel.
template <Activation kActivation>
GpuStatus LaunchActivationMul(const MlpGpuArgs& args, GpuStream stream);

}  // namespace iha::kernels
