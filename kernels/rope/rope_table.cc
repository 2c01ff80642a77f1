#include "kernels/rope/rope.h"
#include "kernels/support/exact_math.h"

namespace iha::kernels {

void RopeFrequencies(double theta, size_t rotary_dim, double* frequency) {
  for (size_t i = 0; i < rotary_dim / 2; ++i) {
    frequency[i] = ExactPow(theta, -(2.0 * static_cast<double>(i) / static_cast<double>(rotary_dim)));
  }
}

void FillRopeTable(const double* frequency, size_t half, uint32_t pos0, size_t count, double factor, float* cos,
                   float* sin) {
  for (size_t row = 0; row < count; ++row) {
    const double position = static_cast<double>(pos0) + static_cast<double>(row);
    for (size_t i = 0; i < half; ++i) {
      const SinCosValue value = ExactSinCos(position, frequency[i]);
      cos[row * half + i] = static_cast<float>(factor * value.cos);
      sin[row * half + i] = static_cast<float>(factor * value.sin);
    }
  }
}

}  // namespace iha::kernels
