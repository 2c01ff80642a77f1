#include <algorithm>

#include "kernels/iha_collapse/iha_collapse_gpu.h"
#include "kernels/support/small_float.h"

namespace iha::kernels {

void CollapseGpuPack(uint32_t heads, uint32_t pseudo, uint32_t terms, const float* collapse, uint16_t* packed) {
  const CollapseGpuLayout layout = CollapseGpuLayoutFor(heads, pseudo, terms);
  std::fill(packed, packed + layout.elements(), uint16_t{0});
  const size_t n = size_t{heads} * pseudo;
  for (size_t h = 0; h < heads; ++h) {
    for (size_t r = 0; r < n; ++r) {
      float rest = collapse[h * n + r];
      for (size_t term = 0; term < terms; ++term) {
        const uint16_t bits = RoundToBF16(rest);
        packed[(h * terms + term) * layout.columns + r] = bits;
        rest -= WidenBF16(bits);
      }
    }
  }
}

}  // namespace iha::kernels
