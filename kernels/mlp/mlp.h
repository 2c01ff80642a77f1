// mlp.h: the gated activation between the two linears: out = act(gate) * up.
//
// Fixed operations (NUM-7), e = ExpNeg(-|z|), sig(z) = (z >= 0 ? 1 : e) / (1 + e):
//   kSilu      x * sig(x)
//   kGeluTanh  x * sig(2 sqrt(2/pi) (x + 0.044715 x^3)), equal to 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
//   kGeluErf   x Phi(x), Phi the normal distribution function: gelu_erf.h; relative error below 6 * 2^-24 for x >= -13
//   kRelu      max(x, +0), NaN stays NaN
// then one rounded product with up. Elements are independent. out may be gate or up. Blocks until written.
#pragma once

#include <cstddef>

#include "kernels/support/parallel_for.h"

namespace iha::kernels {

enum class Activation { kSilu, kGeluTanh, kGeluErf, kRelu };

struct MlpShape {
  size_t rows = 0;
  size_t n = 0;
  size_t ld_gate = 0, ld_up = 0, ld_out = 0;  // floats between rows
};

// up may be null: out = act(gate).
void ActivationMul(Activation activation, const MlpShape& shape, const float* gate, const float* up, float* out,
                   ParallelFor& parallel);
// In double, out dense [rows][n].
void ActivationMulRef(Activation activation, const MlpShape& shape, const float* gate, const float* up, double* out);

}  // namespace iha::kernels
