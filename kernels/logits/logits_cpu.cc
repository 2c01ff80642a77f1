#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/logits/logits_cpu.cc"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <limits>

#include "kernels/logits/logits.h"
#include "kernels/support/lanes-inl.h"

#ifndef IHA_KERNELS_LOGITS_CPU_ONCE
#define IHA_KERNELS_LOGITS_CPU_ONCE
namespace iha::kernels {
// Terms are ExpNeg((x - max) / temperature); their lanes' sums fold to the result. out may be null.
struct ExpTerms {
  const float* x;
  size_t n;
  float max;
  float temperature;
  float* out;
};
}  // namespace iha::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace iha::kernels::HWY_NAMESPACE {

double SumExp(const ExpTerms& t) {
  const X16 max = X16::Set(t.max), temperature = X16::Set(t.temperature);
  double sum[16] = {};
  alignas(64) float terms[16];
  for (size_t i = 0; i < t.n; i += 16) {
    const size_t n = t.n - i < 16 ? t.n - i : 16;
    X16 e = Sub(n == 16 ? X16::Load(t.x + i) : X16::LoadN(t.x + i, n), max);
    if (t.temperature != 1.0f) e = Div(e, temperature);
    e = ExpNeg(e);
    e.Store(terms);
    for (size_t j = n; j < 16; ++j) terms[j] = 0.0f;
    for (int j = 0; j < 16; ++j) sum[j] += static_cast<double>(terms[j]);
    if (t.out != nullptr) std::memcpy(t.out + i, terms, n * sizeof(float));
  }
  return Fold16(sum);
}

}  // namespace iha::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace iha::kernels {
HWY_EXPORT(SumExp);

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// The largest value; NaN if any value is NaN.
float LargestOrNaN(std::span<const float> x) {
  // Lanes of independent maxima: the largest value does not depend on the order, only a NaN would, hence the count.
  float best[16];
  for (float& b : best) b = -std::numeric_limits<float>::infinity();
  size_t nans = 0, i = 0;
  for (; i + 16 <= x.size(); i += 16) {
    for (int j = 0; j < 16; ++j) {
      const float v = x[i + j];
      nans += v != v;
      best[j] = v > best[j] ? v : best[j];
    }
  }
  for (; i < x.size(); ++i) {
    nans += x[i] != x[i];
    best[0] = x[i] > best[0] ? x[i] : best[0];
  }
  if (nans != 0) return std::numeric_limits<float>::quiet_NaN();
  float largest = best[0];
  for (float b : best) largest = b > largest ? b : largest;
  return largest;
}

}  // namespace

int32_t Argmax(std::span<const float> logits) {
  if (logits.empty()) return -1;
  const float largest = LargestOrNaN(logits);
  if (largest != largest) return -1;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] == largest) return static_cast<int32_t>(i);
  }
  return -1;
}

double LogSumExp(std::span<const float> logits) {
  if (logits.empty()) return -std::numeric_limits<double>::infinity();
  const float largest = LargestOrNaN(logits);
  if (!std::isfinite(largest)) return kNaN;
  const double sum = HWY_DYNAMIC_DISPATCH(SumExp)({logits.data(), logits.size(), largest, 1.0f, nullptr});
  return static_cast<double>(largest) + ExactLog(sum);
}

double SoftmaxWeights(std::span<const float> logits, float temperature, float* weights) {
  const float largest = LargestOrNaN(logits);
  if (!std::isfinite(largest)) {
    for (size_t i = 0; i < logits.size(); ++i) weights[i] = static_cast<float>(kNaN);
    return logits.empty() ? 0.0 : kNaN;
  }
  return HWY_DYNAMIC_DISPATCH(SumExp)({logits.data(), logits.size(), largest, temperature, weights});
}

}  // namespace iha::kernels
#endif
