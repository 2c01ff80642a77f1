#include "kernels/rope/rope.h"
#include "kernels/support/exact_math.h"

namespace iha::kernels {

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
