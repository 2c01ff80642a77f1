// lanes.h: kernels work in rows of 16 lanes (numerics.md, NUM-3, NUM-6), whatever the vector width.
#pragma once

#include <cstddef>

namespace iha::kernels {

// The next multiple of 16: what n floats take in whole rows of lanes.
constexpr size_t RoundUp16(size_t n) { return (n + 15) / 16 * 16; }

}  // namespace iha::kernels
