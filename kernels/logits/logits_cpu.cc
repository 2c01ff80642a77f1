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

// The largest of n values; NaN if any is NaN. Lanes of independent maxima: the order does not matter, except for a NaN.
float LargestOrNaN(const float* x, size_t n) {
  constexpr float kNegInf = -std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
  float largest = kNegInf;
  size_t i = 0;
#if IHA_FUSED
  const D d;
  constexpr size_t kStep = 4 * size_t{kLanes};
  V best0 = VSet(kNegInf), best1 = best0, best2 = best0, best3 = best0;
  auto nan = hn::IsNaN(best0);
  for (; i + kStep <= n; i += kStep) {
    const V v0 = VLoad(x + i), v1 = VLoad(x + i + kLanes), v2 = VLoad(x + i + 2 * kLanes),
            v3 = VLoad(x + i + 3 * kLanes);
    nan = hn::Or(nan, hn::Or(hn::Or(hn::IsNaN(v0), hn::IsNaN(v1)), hn::Or(hn::IsNaN(v2), hn::IsNaN(v3))));
    best0 = VMax(best0, v0);
    best1 = VMax(best1, v1);
    best2 = VMax(best2, v2);
    best3 = VMax(best3, v3);
  }
  if (!hn::AllFalse(d, nan)) return kNaN;
  largest = hn::GetLane(hn::MaxOfLanes(d, VMax(VMax(best0, best1), VMax(best2, best3))));
#endif
  for (; i < n; ++i) {
    if (x[i] != x[i]) return kNaN;
    largest = x[i] > largest ? x[i] : largest;
  }
  return largest;
}

// The first i with x[i] == value, n if there is none.
size_t FirstEqual(const float* x, size_t n, float value) {
  size_t i = 0;
#if IHA_FUSED
  const D d;
  constexpr size_t kStep = 4 * size_t{kLanes};
  const V wanted = VSet(value);
  for (; i + kStep <= n; i += kStep) {
    const auto low = hn::Or(hn::Eq(VLoad(x + i), wanted), hn::Eq(VLoad(x + i + kLanes), wanted));
    const auto high = hn::Or(hn::Eq(VLoad(x + i + 2 * kLanes), wanted), hn::Eq(VLoad(x + i + 3 * kLanes), wanted));
    if (!hn::AllFalse(d, hn::Or(low, high))) break;
  }
#endif
  while (i < n && x[i] != value) ++i;
  return i;
}

}  // namespace iha::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace iha::kernels {
HWY_EXPORT(SumExp);
HWY_EXPORT(LargestOrNaN);
HWY_EXPORT(FirstEqual);

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

float Largest(std::span<const float> x) { return HWY_DYNAMIC_DISPATCH(LargestOrNaN)(x.data(), x.size()); }

}  // namespace

int32_t Argmax(std::span<const float> logits) {
  if (logits.empty()) return -1;
  const float largest = Largest(logits);
  if (largest != largest) return -1;
  return static_cast<int32_t>(HWY_DYNAMIC_DISPATCH(FirstEqual)(logits.data(), logits.size(), largest));
}

double LogSumExp(std::span<const float> logits) {
  if (logits.empty()) return -std::numeric_limits<double>::infinity();
  const float largest = Largest(logits);
  if (!std::isfinite(largest)) return kNaN;
  const double sum = HWY_DYNAMIC_DISPATCH(SumExp)({logits.data(), logits.size(), largest, 1.0f, nullptr});
  return static_cast<double>(largest) + ExactLog(sum);
}

double SoftmaxWeights(std::span<const float> logits, float temperature, float* weights) {
  const float largest = Largest(logits);
  if (!std::isfinite(largest)) {
    for (size_t i = 0; i < logits.size(); ++i) weights[i] = static_cast<float>(kNaN);
    return logits.empty() ? 0.0 : kNaN;
  }
  return HWY_DYNAMIC_DISPATCH(SumExp)({logits.data(), logits.size(), largest, temperature, weights});
}

}  // namespace iha::kernels
#endif
