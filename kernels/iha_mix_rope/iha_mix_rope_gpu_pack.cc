#include <algorithm>

#include "kernels/iha_mix_rope/iha_mix_rope_gpu.h"
#include "kernels/support/small_float.h"

namespace iha::kernels {

uint32_t MixGpuTerms(const float* alpha, size_t n) {
  return std::all_of(alpha, alpha + n, [](float a) { return WidenBF16(RoundToBF16(a)) == a; }) ? 1 : 2;
}

void MixGpuPackAlpha(const IhaMixGpuShape& shape, uint32_t terms, const float* alpha, uint16_t* packed) {
  const MixGpuAlphaLayout layout = MixGpuAlphaLayoutFor(shape, terms);
  std::fill(packed, packed + layout.elements(), uint16_t{0});
  for (size_t row = 0; row < size_t{shape.heads} * shape.pseudo; ++row) {
    for (size_t m = 0; m < shape.heads; ++m) {
      float rest = alpha[row * shape.heads + m];
      for (size_t term = 0; term < terms; ++term) {
        const uint16_t bits = RoundToBF16(rest);
        packed[(row * terms + term) * layout.columns + m] = bits;
        rest -= WidenBF16(bits);
      }
    }
  }
}

}  // namespace iha::kernels
