// sampling_limits.h: what every part that takes sampling parameters agrees to refuse.
#pragma once

namespace iha {

// The smallest temperature but 0. Below, (x - max) / T leaves fp32 for ordinary logits: such a temperature means 0.
inline constexpr double kMinTemperature = 1e-4;

}  // namespace iha
