#include "model/checkpoint/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/support/exact_math.h"

namespace iha::checkpoint {
namespace {

std::vector<double> PlainFrequencies(double theta, int64_t head_dim) {
  std::vector<double> result(static_cast<size_t>(head_dim / 2));
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = 1.0 / kernels::ExactPow(theta, static_cast<double>(2 * i) / static_cast<double>(head_dim));
  }
  return result;
}

// Long wavelengths are divided by factor, short ones kept, a band between them blended.
void ApplyLlama3(const RopeSpec& spec, std::vector<double>& frequencies) {
  const double old_context = static_cast<double>(spec.original_max_positions);
  for (double& frequency : frequencies) {
    const double wavelength = 2 * std::numbers::pi / frequency;
    if (wavelength > old_context / spec.low_freq_factor) {
      frequency /= spec.factor;
    } else if (wavelength >= old_context / spec.high_freq_factor) {
      const double smooth =
          (old_context / wavelength - spec.low_freq_factor) / (spec.high_freq_factor - spec.low_freq_factor);
      frequency = (1 - smooth) * frequency / spec.factor + smooth * frequency;
    }
  }
}

// Dimension whose frequency turns `rotations` times over the original context.
double CorrectionDimension(const RopeSpec& spec, double rotations, int64_t head_dim) {
  return static_cast<double>(head_dim) *
         kernels::ExactLog(static_cast<double>(spec.original_max_positions) / (rotations * 2 * std::numbers::pi)) /
         (2 * kernels::ExactLog(spec.theta));
}

void ApplyYarn(const RopeSpec& spec, int64_t head_dim, std::vector<double>& frequencies) {
  double low = CorrectionDimension(spec, spec.beta_fast, head_dim);
  double high = CorrectionDimension(spec, spec.beta_slow, head_dim);
  if (spec.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(head_dim - 1));
  if (low == high) high += 0.001;  // no division by zero, as upstream
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] = frequencies[i] / spec.factor * ramp + frequencies[i] * (1 - ramp);
  }
}

}  // namespace

const char* NameOf(RopeScaling scaling) {
  switch (scaling) {
    case RopeScaling::kNone:
      return "default";
    case RopeScaling::kLinear:
      return "linear";
    case RopeScaling::kLlama3:
      return "llama3";
    case RopeScaling::kYarn:
      return "yarn";
    case RopeScaling::kDynamic:
      return "dynamic";
  }
  return "?";
}

std::vector<double> InverseFrequencies(const RopeSpec& spec, int64_t head_dim) {
  std::vector<double> result = PlainFrequencies(spec.theta, head_dim);
  switch (spec.scaling) {
    case RopeScaling::kNone:
    case RopeScaling::kDynamic:
      break;
    case RopeScaling::kLinear:
      for (double& frequency : result) frequency /= spec.factor;
      break;
    case RopeScaling::kLlama3:
      ApplyLlama3(spec, result);
      break;
    case RopeScaling::kYarn:
      ApplyYarn(spec, head_dim, result);
      break;
  }
  return result;
}

double YarnAttentionFactor(double factor, double mscale, double mscale_all_dim) {
  const auto scale = [factor](double m) { return factor <= 1 ? 1.0 : 0.1 * m * kernels::ExactLog(factor) + 1.0; };
  if (mscale != 0 && mscale_all_dim != 0) return scale(mscale) / scale(mscale_all_dim);
  return scale(1.0);
}

}  // namespace iha::checkpoint
