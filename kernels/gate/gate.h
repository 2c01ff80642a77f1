// gate.h: y_h *= sigmoid(g), one gate a head or one a feature.
//
// Fixed operations (NUM-12, NUM-7): sig(z) = (z >= 0 ? 1 : e) / (1 + e), e = ExpNeg(-|z|), then one rounded product.
// Elements are independent. In place. Blocks until written. Source: checkpoints.md, modifiers (`gate`).
#pragma once

#include <cstddef>

#include "kernels/support/parallel_for.h"

namespace iha::kernels {

struct GateShape {
  size_t tokens = 0;
  size_t heads = 0;
  size_t d = 0;
  bool elementwise = false;
};

// y: [tokens][heads][d]. g, before the sigmoid: [tokens][heads], elementwise [tokens][heads][d].
void Gate(const GateShape& shape, float* y, const float* g, ParallelFor& parallel);
// In double; z like y.
void GateRef(const GateShape& shape, const float* y, const float* g, double* z);

}  // namespace iha::kernels
