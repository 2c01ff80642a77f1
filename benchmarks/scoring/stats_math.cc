#include "benchmarks/scoring/stats_math.h"

#include <cmath>

namespace iha::scoring {
namespace {

constexpr double kLn2 = 0.693147180559945309417232;
constexpr double kSqrtHalf = 0.707106781186547524400844;
constexpr double kInverseSqrt2Pi = 0.398942280401432677939946;
constexpr double kSeriesEnd = 3.0;  // of the series about 0 for the normal distribution

// exp(x) for x <= 0: Taylor's series of x / 2^10, squared ten times.
double ExpNegative(double x) {
  const double scaled = x * 0x1.0p-10;
  double term = 1.0, sum = 1.0;
  for (int i = 1; i <= 14; ++i) {
    term = term * scaled / i;
    sum += term;
  }
  for (int i = 0; i < 10; ++i) sum *= sum;
  return sum;
}

}  // namespace

double NaturalLog(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // exact
  if (mantissa < kSqrtHalf) {
    mantissa *= 2.0;
    --exponent;
  }
  // log(m) = 2 atanh((m - 1) / (m + 1)); |s| <= 0.172, so 16 terms are enough for 1e-25.
  const double s = (mantissa - 1.0) / (mantissa + 1.0);
  const double square = s * s;
  double power = s, sum = 0.0;
  for (int i = 1; i <= 31; i += 2) {
    sum += power / i;
    power *= square;
  }
  return 2.0 * sum + exponent * kLn2;
}

double NormalCdf(double x) {
  const double phi = kInverseSqrt2Pi * ExpNegative(-0.5 * x * x);
  if (x > kSeriesEnd) return 1.0 - NormalCdf(-x);
  if (x < -kSeriesEnd) {
    // A tail of 1e-14 is no difference of numbers near 1/2: Laplace's continued fraction, phi / (z + 1 / (z + 2 / ..)).
    const double z = -x;
    double fraction = z;
    for (int i = 120; i > 0; --i) fraction = z + i / fraction;
    return phi / fraction;
  }
  // 1/2 + phi(x) (x + x^3/3 + x^5/(3 5) + ...): all terms of the sum have one sign.
  double term = x, sum = x;
  for (int i = 3; i < 400; i += 2) {
    term = term * x * x / i;
    const double before = sum;
    sum += term;
    if (sum == before) break;
  }
  return 0.5 + phi * sum;
}

double NormalQuantile(double p) {
  double low = -8.0, high = 8.0;
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (NormalCdf(middle) < p ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace iha::scoring
