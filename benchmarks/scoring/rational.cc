#include "benchmarks/scoring/rational.h"

#include <flint/fmpz.h>
#include <flint/fmpz_vec.h>

#include <charconv>
#include <cstdlib>
#include <memory>

namespace iha::scoring {
namespace {

constexpr size_t kMaxDigits = 1000;
constexpr int64_t kMaxExponent = 400;
constexpr int kScoreBits = 62;

class Integer {
 public:
  Integer() { fmpz_init(value_); }
  ~Integer() { fmpz_clear(value_); }
  Integer(const Integer&) = delete;
  Integer& operator=(const Integer&) = delete;
  fmpz* get() { return value_; }

 private:
  fmpz_t value_;
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string TextOf(const fmpz* value) {
  const std::unique_ptr<char, decltype(&std::free)> text(fmpz_get_str(nullptr, 10, value), &std::free);
  return text.get();
}

void PowerOfTen(int64_t exponent, fmpz* out) {
  fmpz_set_ui(out, 10);
  fmpz_pow_ui(out, out, static_cast<ulong>(exponent));
}

// round(num * scale / den) with halves away from zero, for den > 0: floor((2 * |num| * scale + den) / (2 * den)).
void RoundScaled(const fmpq_t value, const fmpz* scale, fmpz* out) {
  Integer twice_den;
  fmpz_abs(out, fmpq_numref(value));
  fmpz_mul(out, out, scale);
  fmpz_mul_2exp(out, out, 1);
  fmpz_add(out, out, fmpq_denref(value));
  fmpz_mul_2exp(twice_den.get(), fmpq_denref(value), 1);
  fmpz_fdiv_q(out, out, twice_den.get());
  if (fmpq_sgn(value) < 0) fmpz_neg(out, out);
}

}  // namespace

Rational::Rational(int64_t num, int64_t den) : Rational() {
  Integer n, d;
  fmpz_set_si(n.get(), num);
  fmpz_set_si(d.get(), den);
  fmpq_set_fmpz_frac(value_, n.get(), d.get());
}

std::optional<Rational> Rational::ParseDecimal(std::string_view text) {
  std::string digits;
  size_t i = 0;
  if (i < text.size() && (text[i] == '+' || text[i] == '-')) {
    if (text[i] == '-') digits.push_back('-');
    ++i;
  }
  const size_t sign_size = digits.size();
  int64_t exponent = 0;
  while (i < text.size() && IsDigit(text[i])) digits.push_back(text[i++]);
  if (i < text.size() && text[i] == '.') {
    for (++i; i < text.size() && IsDigit(text[i]); ++i, --exponent) digits.push_back(text[i]);
  }
  if (digits.size() == sign_size || digits.size() > kMaxDigits) return std::nullopt;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    const bool negative = i < text.size() && text[i] == '-';
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    if (i == text.size() || !IsDigit(text[i])) return std::nullopt;
    int64_t written = 0;
    for (; i < text.size() && IsDigit(text[i]); ++i) {
      written = written * 10 + (text[i] - '0');
      if (written > kMaxExponent) return std::nullopt;
    }
    exponent += negative ? -written : written;
  }
  if (i != text.size()) return std::nullopt;

  Rational result;
  fmpz_set_str(fmpq_numref(result.value_), digits.c_str(), 10);
  Integer power;
  PowerOfTen(std::llabs(exponent), power.get());
  if (exponent >= 0) {
    fmpq_mul_fmpz(result.value_, result.value_, power.get());
  } else {
    fmpq_div_fmpz(result.value_, result.value_, power.get());
  }
  return result;
}

Rational Rational::Binomial(int64_t n, int64_t k) {
  Rational result;
  if (k < 0 || k > n) return result;
  fmpz_bin_uiui(fmpq_numref(result.value_), static_cast<ulong>(n), static_cast<ulong>(k));
  return result;
}

Rational& Rational::operator+=(const Rational& other) {
  fmpq_add(value_, value_, other.value_);
  return *this;
}

Rational& Rational::operator-=(const Rational& other) {
  fmpq_sub(value_, value_, other.value_);
  return *this;
}

Rational& Rational::operator*=(const Rational& other) {
  fmpq_mul(value_, value_, other.value_);
  return *this;
}

Rational& Rational::operator/=(const Rational& other) {
  fmpq_div(value_, value_, other.value_);
  return *this;
}

Score Rational::ToScore() const {
  const fmpz* num = fmpq_numref(value_);
  const fmpz* den = fmpq_denref(value_);
  if (fmpz_bits(num) <= 63 && fmpz_bits(den) <= 63) return {fmpz_get_si(num), fmpz_get_si(den)};
  Integer scale, rounded;
  fmpz_one_2exp(scale.get(), kScoreBits);
  RoundScaled(value_, scale.get(), rounded.get());
  const Rational nearest(fmpz_get_si(rounded.get()), int64_t{1} << kScoreBits);  // in lowest terms again
  return {fmpz_get_si(fmpq_numref(nearest.value_)), fmpz_get_si(fmpq_denref(nearest.value_))};
}

std::string Rational::ToString() const {
  std::string text = TextOf(fmpq_numref(value_));
  if (!IsInteger()) text += "/" + TextOf(fmpq_denref(value_));
  return text;
}

std::string Rational::ToFixed(int digits) const {
  Integer scale, rounded;
  PowerOfTen(digits, scale.get());
  RoundScaled(value_, scale.get(), rounded.get());
  const bool negative = fmpz_sgn(rounded.get()) < 0;
  fmpz_abs(rounded.get(), rounded.get());
  std::string text = TextOf(rounded.get());
  const auto places = static_cast<size_t>(digits);
  if (text.size() <= places) text.insert(0, places + 1 - text.size(), '0');
  if (places > 0) text.insert(text.size() - places, ".");
  return negative ? "-" + text : text;
}

double Rational::ToDouble() const {
  const std::string text = ToFixed(20);
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace iha::scoring
