#include "kernels/rope/rope.h"

namespace iha::kernels {

void RopeRef(const RopeShape& shape, const float* x, const uint32_t* positions, const float* cos, const float* sin,
             double* y) {
  const size_t half = shape.rotary_dim / 2;
  const bool halves = shape.pairing == RopePairing::kHalf;
  for (size_t t = 0; t < shape.tokens; ++t) {
    for (size_t h = 0; h < shape.heads; ++h) {
      const float* in = x + t * shape.token_stride + h * shape.head_stride;
      double* out = y + (t * shape.heads + h) * shape.rotary_dim;
      for (size_t i = 0; i < half; ++i) {
        const size_t iu = halves ? i : 2 * i, iv = halves ? i + half : 2 * i + 1;
        const double c = cos[positions[t] * half + i], s = sin[positions[t] * half + i];
        out[iu] = in[iu] * c - in[iv] * s;
        out[iv] = in[iv] * c + in[iu] * s;
      }
    }
  }
}

}  // namespace iha::kernels
