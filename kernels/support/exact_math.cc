#include "kernels/support/exact_math.h"

#include <limits>

namespace iha::kernels {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// ln 2 and pi/2 in pieces: the leading ones have enough trailing zeros that n * piece is exact for the n that occur.
constexpr double kLn2Hi = 0x1.62e42feep-1;        // 32 bits
constexpr double kLn2Lo = 0x1.a39ef35793c76p-33;  // ln 2 - kLn2Hi, rounded
constexpr double kInvLn2 = 0x1.71547652b82fep0;
constexpr double kHalfPi1 = 0x1.921fb544p0;         // 31 bits
constexpr double kHalfPi2 = 0x1.0b4611a6p-34;       // next 32 bits
constexpr double kHalfPi3 = 0x1.3198a2e037073p-69;  // the rest, rounded: error below 2^-121
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;

double ScaleByPowerOfTwo(double x, int n) {
  // In two steps, so that neither factor over- or underflows for |n| <= 2000.
  const int half = n / 2;
  const auto power = [](int e) { return std::bit_cast<double>(static_cast<uint64_t>(e + 1023) << 52); };
  return x * power(half) * power(n - half);
}

// Horner in fma, coefficients from the highest degree down.
template <size_t kCount>
double Polynomial(const double (&c)[kCount], double x) {
  double p = c[0];
  for (size_t i = 1; i < kCount; ++i) p = std::fma(p, x, c[i]);
  return p;
}

constexpr double Inverse(double factorial) { return 1.0 / factorial; }

// Taylor coefficients; on the reduced ranges the truncation is below 2^-58.
constexpr double kExpTail[] = {Inverse(87178291200.0),
                               Inverse(6227020800.0),
                               Inverse(479001600.0),
                               Inverse(39916800.0),
                               Inverse(3628800.0),
                               Inverse(362880.0),
                               Inverse(40320.0),
                               Inverse(5040.0),
                               Inverse(720.0),
                               Inverse(120.0),
                               Inverse(24.0),
                               Inverse(6.0),
                               0.5};
constexpr double kSinTail[] = {
    Inverse(355687428096000.0), -Inverse(1307674368000.0), Inverse(6227020800.0), -Inverse(39916800.0),
    Inverse(362880.0),          -Inverse(5040.0),          Inverse(120.0),        -Inverse(6.0)};
constexpr double kCosTail[] = {
    Inverse(20922789888000.0), -Inverse(87178291200.0), Inverse(479001600.0), -Inverse(3628800.0),
    Inverse(40320.0),          -Inverse(720.0),         Inverse(24.0)};

// 2 atanh(s) / s - 2 as a series in s^2, without its factor s^2.
constexpr double kAtanhTail[] = {2.0 / 23, 2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13,
                                 2.0 / 11, 2.0 / 9,  2.0 / 7,  2.0 / 5,  2.0 / 3};

}  // namespace

double ExactExp(double x) {
  if (x != x) return x;
  if (x > 709.0) return kInfinity;
  if (x < -708.0) return 0.0;
  const double n = std::nearbyint(x * kInvLn2);
  // r = hi + lo with |r| <= ln(2) / 2.
  const double hi = std::fma(n, -kLn2Hi, x);
  const double lo = n * -kLn2Lo;
  const double r = hi + lo;
  const double tail = (hi - r) + lo;  // what the sum lost
  const double p = std::fma(r * r, Polynomial(kExpTail, r), tail);
  return ScaleByPowerOfTwo(1.0 + (r + p), static_cast<int>(n));
}

double ExactLog(double x) {
  if (!(x > 0.0)) return x == 0.0 ? -kInfinity : kNaN;
  if (x == kInfinity) return x;
  // x = 2^e * m with m in [sqrt(1/2), sqrt(2)).
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int e = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFull) | 0x3FF0000000000000ull);
  if (m > 0x1.6a09e667f3bcdp0) {
    m *= 0.5;
    ++e;
  }
  // log m = 2 atanh(s), s = f / (2 + f) with f = m - 1 exact. Written as f - s (f - R): the leading f is exact.
  const double f = m - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double r = z * Polynomial(kAtanhTail, z);  // 2 atanh(s) = 2 s + s r, and 2 s = f - s f
  const double n = static_cast<double>(e);
  return std::fma(n, kLn2Hi, f - (s * (f - r) - n * kLn2Lo));
}

double ExactPow(double base, double exponent) { return ExactExp(exponent * ExactLog(base)); }

SinCosValue ExactSinCos(double position, double frequency) {
  // The product as hi + lo, exactly.
  const double hi = position * frequency;
  const double lo = std::fma(position, frequency, -hi);
  const double n = std::nearbyint(hi * kTwoOverPi);
  // hi - n pi/2. `a` is exact (both terms are multiples of 2^-52 ulps of a value below 1), n * kHalfPi2 is exact for
  // |n| < 2^21, and what the difference loses is kept (two-sum).
  const double a = std::fma(n, -kHalfPi1, hi);
  const double b2 = n * kHalfPi2;
  const double b = a - b2;
  const double bb = b - a;
  const double b_lost = (a - (b - bb)) - (b2 + bb);
  const double rest = (b_lost - n * kHalfPi3) + lo;
  const double r = b + rest;
  const double tail = (b - r) + rest;
  const double z = r * r;
  // sin(r + tail) = sin r + tail cos r; cos(r + tail) = cos r - tail sin r: first-order terms suffice below 2^-50.
  const double sin = r + std::fma(r * z, Polynomial(kSinTail, z), tail * (1.0 - 0.5 * z));
  const double half = 0.5 * z;
  const double w = 1.0 - half;
  const double cos = w + (((1.0 - w) - half) + std::fma(z * z, Polynomial(kCosTail, z), -r * tail));
  switch (static_cast<int64_t>(n) & 3) {
    case 0:
      return {sin, cos};
    case 1:
      return {cos, -sin};
    case 2:
      return {-sin, -cos};
    default:
      return {-cos, sin};
  }
}

}  // namespace iha::kernels
