// rational.h: exact rationals of any size (FLINT's fmpq), the arithmetic behind every score, vote and printed number.
//
// Values are immutable in the way ints are: cheap to copy while numerator and denominator stay below 2^62. Thread: any;
// an object belongs to one thread while it is written. Nothing here goes through a binary double.
#pragma once

#include <flint/fmpq.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/eval_types.h"

namespace iha::scoring {

class Rational {
 public:
  Rational() { fmpq_init(value_); }
  Rational(int64_t integer) : Rational() { fmpz_set_si(fmpq_numref(value_), integer); }  // NOLINT: ints are rationals
  // num / den in lowest terms; `den` must not be 0.
  Rational(int64_t num, int64_t den);
  explicit Rational(const Score& score) : Rational(score.num, score.den) {}
  Rational(const Rational& other) : Rational() { fmpq_set(value_, other.value_); }
  Rational(Rational&& other) noexcept : Rational() { fmpq_swap(value_, other.value_); }
  Rational& operator=(const Rational& other) {
    fmpq_set(value_, other.value_);
    return *this;
  }
  Rational& operator=(Rational&& other) noexcept {
    fmpq_swap(value_, other.value_);
    return *this;
  }
  ~Rational() { fmpq_clear(value_); }

  // "[+-]digits[.digits][e[+-]digits]"; nullopt for anything else, and for more than 1,000 digits or an exponent beyond
  // +-400 (the text comes from a model: its size must not decide how much memory we use).
  static std::optional<Rational> ParseDecimal(std::string_view text);
  // n over k; 0 when k < 0 or k > n.
  static Rational Binomial(int64_t n, int64_t k);

  Rational& operator+=(const Rational& other);
  Rational& operator-=(const Rational& other);
  Rational& operator*=(const Rational& other);
  Rational& operator/=(const Rational& other);  // `other` must not be 0
  friend Rational operator+(Rational a, const Rational& b) { return a += b; }
  friend Rational operator-(Rational a, const Rational& b) { return a -= b; }
  friend Rational operator*(Rational a, const Rational& b) { return a *= b; }
  friend Rational operator/(Rational a, const Rational& b) { return a /= b; }
  friend bool operator==(const Rational& a, const Rational& b) { return fmpq_equal(a.value_, b.value_) != 0; }
  friend std::strong_ordering operator<=>(const Rational& a, const Rational& b) {
    return fmpq_cmp(a.value_, b.value_) <=> 0;
  }
  int Sign() const { return fmpq_sgn(value_); }
  bool IsInteger() const { return fmpz_is_one(fmpq_denref(value_)) != 0; }

  // FLINT's own view, for callers that compute with fmpq, fmpq_mpoly or arb; valid while this object lives.
  const fmpq* raw() const { return value_; }
  fmpq* mutable_raw() { return value_; }

  // As a Score. Exact when numerator and denominator fit 63 bits; otherwise rounded to the nearest multiple of 2^-62,
  // halves away from zero. (Maj@k and pass@k of up to 64 samples have binomials below 2^61, so rounding is rare.)
  // The value must lie in [-1, 1].
  Score ToScore() const;
  // "18", "-5", "1/2": lowest terms, the canonical text that votes are grouped by.
  std::string ToString() const;
  // Decimal text with exactly `digits` >= 0 places, halves away from zero: 1/8 with 2 places is "0.13", -1/8 "-0.13".
  // A value that rounds to zero has no minus sign.
  std::string ToFixed(int digits) const;
  // The double nearest to the value's first 20 decimal places: the same on every machine. For output only.
  double ToDouble() const;

 private:
  fmpq_t value_;
};

}  // namespace iha::scoring
