#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gate/gate_cpu.cc"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include "kernels/gate/gate.h"
#include "kernels/support/row_chunks.h"
#include "kernels/support/sigmoid-inl.h"

HWY_BEFORE_NAMESPACE();
namespace iha::kernels::HWY_NAMESPACE {

// gate_of(i): the gates, before the sigmoid, of features i .. i + 15 (the last call: of what is left).
template <class GateOf>
HWY_INLINE void GateRow(float* y, size_t d, GateOf gate_of) {
  size_t i = 0;
  for (; i + 16 <= d; i += 16) Mul(X16::Load(y + i), Sigmoid(gate_of(i, size_t{16}))).Store(y + i);
  if (i < d) Mul(X16::LoadN(y + i, d - i), Sigmoid(gate_of(i, d - i))).StoreN(y + i, d - i);
}

void GateRows(const GateShape& shape, float* y, const float* g, size_t r0, size_t r1) {
  const size_t d = shape.d;
  for (size_t r = r0; r < r1; ++r) {
    if (shape.elementwise) {
      GateRow(y + r * d, d, [at = g + r * d](size_t i, size_t n) { return X16::LoadN(at + i, n); });
    } else {
      GateRow(y + r * d, d, [gate = X16::Set(g[r])](size_t, size_t) { return gate; });
    }
  }
}

}  // namespace iha::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace iha::kernels {
HWY_EXPORT(GateRows);

void Gate(const GateShape& shape, float* y, const float* g, ParallelFor& parallel) {
  const auto rows = HWY_DYNAMIC_DISPATCH(GateRows);
  ForRowChunks(shape.tokens * shape.heads, shape.d, parallel, [&](size_t r0, size_t r1) { rows(shape, y, g, r0, r1); });
}

}  // namespace iha::kernels
#endif
