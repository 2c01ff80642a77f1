#include "benchmarks/scoring/math/radicals.h"

#include <flint/fmpq.h>
#include <flint/fmpz.h>
#include <flint/ulong_extras.h>

#include <map>
#include <optional>

#include "benchmarks/scoring/math/fold_kids.h"

namespace iha::scoring::math {
namespace {

constexpr ulong kTrial = 10'000;  // primes below are divided out of a radicand
constexpr size_t kMaxTerms = 64;
constexpr int64_t kMaxBits = 4096;
constexpr slong kMaxPower = 64;
constexpr slong kMaxRadicandBits = 256;

// prime -> exponent in (0, 1)
using Roots = std::map<ulong, Rational>;
using Terms = std::map<std::string, std::pair<Roots, Rational>>;  // by their roots; no coefficient is 0

struct Quotient {
  Terms num;
  Terms den;
};

std::string KeyOf(const Roots& roots) {
  std::string key;
  for (const auto& [prime, exponent] : roots) key += std::to_string(prime) + "^" + exponent.ToString() + " ";
  return key;
}

int64_t Bits(const Rational& value) {
  return static_cast<int64_t>(fmpz_bits(fmpq_numref(value.raw())) + fmpz_bits(fmpq_denref(value.raw())));
}

Rational Power(const Rational& base, slong exponent) {
  Rational out;
  fmpq_pow_si(out.mutable_raw(), base.raw(), exponent);
  return out;
}

// False when there are too many terms, or too large ones.
bool AddTerm(Terms& terms, const Roots& roots, const Rational& coefficient) {
  auto& entry = terms.try_emplace(KeyOf(roots), roots, Rational(0)).first->second;
  entry.second += coefficient;
  const bool fits = Bits(entry.second) <= kMaxBits && terms.size() <= kMaxTerms;
  if (entry.second.Sign() == 0) terms.erase(KeyOf(roots));
  return fits;
}

Terms Constant(const Rational& value) {
  Terms out;
  AddTerm(out, {}, value);
  return out;
}

// prime^exponent into `roots`, its whole part into `coefficient`.
bool Multiply(Roots& roots, Rational& coefficient, ulong prime, const Rational& exponent) {
  const auto found = roots.find(prime);
  Rational total = found == roots.end() ? exponent : found->second + exponent;
  if (found != roots.end()) roots.erase(found);
  fmpz_t whole;
  fmpz_init(whole);
  fmpz_fdiv_q(whole, fmpq_numref(total.raw()), fmpq_denref(total.raw()));
  const bool small = fmpz_cmp_si(whole, kMaxBits) <= 0 && fmpz_cmp_si(whole, -kMaxBits) >= 0;
  const slong steps = small ? fmpz_get_si(whole) : 0;
  fmpz_clear(whole);
  if (!small) return false;
  coefficient *= Power(Rational(static_cast<int64_t>(prime)), steps);
  total = total - Rational(steps);
  if (total.Sign() != 0) roots.emplace(prime, total);
  return Bits(coefficient) <= kMaxBits;
}

std::optional<Terms> Product(const Terms& a, const Terms& b) {
  Terms out;
  for (const auto& [left_key, left] : a) {
    for (const auto& [right_key, right] : b) {
      Roots roots = left.first;
      Rational coefficient = left.second * right.second;
      for (const auto& [prime, exponent] : right.first) {
        if (!Multiply(roots, coefficient, prime, exponent)) return std::nullopt;
      }
      if (!AddTerm(out, roots, coefficient)) return std::nullopt;
    }
  }
  return out;
}

std::optional<Quotient> Product(const Quotient& a, const Quotient& b) {
  auto num = Product(a.num, b.num);
  auto den = num.has_value() ? Product(a.den, b.den) : std::nullopt;
  if (!den.has_value()) return std::nullopt;
  return Quotient{*std::move(num), *std::move(den)};
}

std::optional<Quotient> Sum(const Quotient& a, const Quotient& b) {
  auto left = Product(a.num, b.den);
  const auto right = left.has_value() ? Product(b.num, a.den) : std::nullopt;
  auto den = right.has_value() ? Product(a.den, b.den) : std::nullopt;
  if (!den.has_value()) return std::nullopt;
  for (const auto& [key, term] : *right) {
    if (!AddTerm(*left, term.first, term.second)) return std::nullopt;
  }
  return Quotient{*std::move(left), *std::move(den)};
}

// value^exponent for a positive whole number, times what `roots` and `coefficient` hold.
bool MultiplyPower(const fmpz* value, const Rational& exponent, Roots& roots, Rational& coefficient) {
  if (static_cast<slong>(fmpz_bits(value)) > kMaxRadicandBits) return false;
  fmpz_t rest;
  fmpz_init_set(rest, value);
  bool ok = true;
  n_primes_t primes;
  n_primes_init(primes);
  for (ulong prime = n_primes_next(primes); ok && prime < kTrial && !fmpz_is_one(rest); prime = n_primes_next(primes)) {
    slong times = 0;
    while (fmpz_divisible_si(rest, static_cast<slong>(prime))) {
      fmpz_divexact_ui(rest, rest, prime);
      ++times;
    }
    if (times > 0) ok = Multiply(roots, coefficient, prime, exponent * Rational(times));
  }
  n_primes_clear(primes);
  if (ok && !fmpz_is_one(rest)) {
    ok = fmpz_fits_si(rest) && n_is_prime(fmpz_get_ui(rest)) != 0 &&
         Multiply(roots, coefficient, fmpz_get_ui(rest), exponent);
  }
  fmpz_clear(rest);
  return ok;
}

class Reader {
 public:
  explicit Reader(const Tree& tree) : tree_(tree) {}

  std::optional<Quotient> Read(Ref ref) {
    if (ref == kNoRef) return std::nullopt;
    const Node& node = tree_[ref];
    switch (node.kind) {
      case Kind::kNumber:
        if (Bits(node.value) > kMaxBits) return std::nullopt;
        return Quotient{Constant(node.value), Constant(Rational(1))};
      case Kind::kAdd:
      case Kind::kMul:
        return FoldQuotients<Quotient>(node, Constant, [this](Ref kid) { return Read(kid); });
      case Kind::kPow:
        return tree_.Is(node.kids[1], Kind::kNumber) ? ReadPower(node) : std::nullopt;
      default:
        return std::nullopt;
    }
  }

 private:
  std::optional<Quotient> ReadPower(const Node& node) {
    const Rational exponent = tree_[node.kids[1]].value;
    auto base = Read(node.kids[0]);
    if (!base.has_value() || base->num.empty()) return std::nullopt;
    if (exponent.IsInteger()) return WholePower(*base, exponent);
    if (base->num.size() != 1 || base->den.size() != 1) return std::nullopt;
    Roots roots;
    Rational coefficient(1);
    for (const bool above : {true, false}) {
      const auto& [of, factor] = (above ? base->num : base->den).begin()->second;
      const Rational power = above ? exponent : Rational(0) - exponent;
      if (!Root(of, factor, power, roots, coefficient)) return std::nullopt;
    }
    Quotient out{{}, Constant(Rational(1))};
    if (!AddTerm(out.num, roots, coefficient)) return std::nullopt;
    return out;
  }

  static std::optional<Quotient> WholePower(Quotient base, const Rational& exponent) {
    if (!fmpz_fits_si(fmpq_numref(exponent.raw()))) return std::nullopt;
    const slong power = fmpz_get_si(fmpq_numref(exponent.raw()));
    if (power > kMaxPower || power < -kMaxPower) return std::nullopt;
    if (power < 0) std::swap(base.num, base.den);
    std::optional<Quotient> out = Quotient{Constant(Rational(1)), Constant(Rational(1))};
    for (slong i = 0; i < std::abs(power) && out.has_value(); ++i) out = Product(*out, base);
    return out;
  }

  // (factor * of)^power into `roots` and `coefficient`. An odd root of a negative number is real.
  static bool Root(const Roots& of, Rational factor, const Rational& power, Roots& roots, Rational& coefficient) {
    if (factor.Sign() < 0) {
      if (fmpz_is_even(fmpq_denref(power.raw()))) return false;
      factor = Rational(0) - factor;
      if (fmpz_is_odd(fmpq_numref(power.raw()))) coefficient = Rational(0) - coefficient;
    }
    for (const auto& [prime, exponent] : of) {
      if (!Multiply(roots, coefficient, prime, exponent * power)) return false;
    }
    return MultiplyPower(fmpq_numref(factor.raw()), power, roots, coefficient) &&
           MultiplyPower(fmpq_denref(factor.raw()), Rational(0) - power, roots, coefficient);
  }

  const Tree& tree_;
};

bool Same(const Terms& a, const Terms& b) {
  if (a.size() != b.size()) return false;
  for (auto x = a.begin(), y = b.begin(); x != a.end(); ++x, ++y) {
    if (x->first != y->first || x->second.second != y->second.second) return false;
  }
  return true;
}

}  // namespace

Exact CompareRadicals(const Tree& tree, Ref a, Ref b) {
  Reader reader(tree);
  const auto left = reader.Read(a);
  const auto right = left.has_value() ? reader.Read(b) : std::nullopt;
  if (!right.has_value() || left->den.empty() || right->den.empty()) return Exact::kUnknown;
  const auto x = Product(left->num, right->den);
  const auto y = x.has_value() ? Product(right->num, left->den) : std::nullopt;
  if (!y.has_value()) return Exact::kUnknown;
  return Same(*x, *y) ? Exact::kEqual : Exact::kDifferent;
}

}  // namespace iha::scoring::math
