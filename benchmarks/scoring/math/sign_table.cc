#include "benchmarks/scoring/math/sign_table.h"

#include <flint/fmpq.h>
#include <flint/fmpq_poly.h>
#include <flint/fmpz_poly.h>
#include <flint/fmpz_poly_factor.h>

#include <algorithm>
#include <cstdlib>

#include "benchmarks/scoring/math/fold_kids.h"

namespace iha::scoring::math {
namespace {

constexpr slong kMaxDegree = 24;
constexpr slong kMaxBits = 512;  // of a coefficient

class RationalPoly {
 public:
  RationalPoly() { fmpq_poly_init(poly_); }
  explicit RationalPoly(const Rational& value) : RationalPoly() { fmpq_poly_set_fmpq(poly_, value.raw()); }
  RationalPoly(const RationalPoly& other) : RationalPoly() { fmpq_poly_set(poly_, other.poly_); }
  RationalPoly(RationalPoly&& other) noexcept : RationalPoly() { fmpq_poly_swap(poly_, other.poly_); }
  RationalPoly& operator=(RationalPoly other) {
    fmpq_poly_swap(poly_, other.poly_);
    return *this;
  }
  ~RationalPoly() { fmpq_poly_clear(poly_); }

  fmpq_poly_struct* get() { return poly_; }
  const fmpq_poly_struct* get() const { return poly_; }
  slong degree() const { return fmpq_poly_degree(poly_); }
  bool zero() const { return fmpq_poly_is_zero(poly_) != 0; }
  bool fits() const {
    return degree() <= kMaxDegree && std::abs(_fmpz_vec_max_bits(fmpq_poly_numref(poly_), poly_->length)) <= kMaxBits &&
           static_cast<slong>(fmpz_bits(fmpq_poly_denref(poly_))) <= kMaxBits;
  }

 private:
  fmpq_poly_t poly_;
};

struct Quotient {
  RationalPoly num;
  RationalPoly den;
};

std::optional<Quotient> Checked(Quotient quotient) {
  if (!quotient.num.fits() || !quotient.den.fits() || quotient.den.zero()) return std::nullopt;
  return quotient;
}

std::optional<Quotient> Sum(const Quotient& a, const Quotient& b) {
  Quotient out;
  RationalPoly right;
  if (fmpq_poly_equal(a.den.get(), b.den.get()) != 0) {
    fmpq_poly_add(out.num.get(), a.num.get(), b.num.get());
    out.den = a.den;
    return Checked(std::move(out));
  }
  fmpq_poly_mul(out.num.get(), a.num.get(), b.den.get());
  fmpq_poly_mul(right.get(), b.num.get(), a.den.get());
  fmpq_poly_add(out.num.get(), out.num.get(), right.get());
  fmpq_poly_mul(out.den.get(), a.den.get(), b.den.get());
  return Checked(std::move(out));
}

std::optional<Quotient> Product(const Quotient& a, const Quotient& b) {
  Quotient out;
  fmpq_poly_mul(out.num.get(), a.num.get(), b.num.get());
  fmpq_poly_mul(out.den.get(), a.den.get(), b.den.get());
  return Checked(std::move(out));
}

// Reads the tree as a quotient of polynomials in its one symbol; nothing is cancelled.
class Reader {
 public:
  explicit Reader(const Tree& tree) : tree_(tree) {}

  std::optional<Quotient> Read(Ref ref) {
    if (ref == kNoRef) return std::nullopt;
    const Node& node = tree_[ref];
    switch (node.kind) {
      case Kind::kNumber:
        return Checked({RationalPoly(node.value), RationalPoly(Rational(1))});
      case Kind::kSymbol: {
        if (!symbol_.empty() && symbol_ != node.text) return std::nullopt;
        symbol_ = node.text;
        Quotient out{RationalPoly(), RationalPoly(Rational(1))};
        fmpq_poly_set_coeff_si(out.num.get(), 1, 1);
        return out;
      }
      case Kind::kAdd:
      case Kind::kMul:
        return FoldQuotients<Quotient>(
            node, [](const Rational& value) { return RationalPoly(value); }, [this](Ref kid) { return Read(kid); });
      case Kind::kPow:
        return ReadPower(node);
      default:
        return std::nullopt;
    }
  }

  const std::string& symbol() const { return symbol_; }

 private:
  std::optional<Quotient> ReadPower(const Node& node) {
    if (!tree_.Is(node.kids[1], Kind::kNumber)) return std::nullopt;
    const Rational& exponent = tree_[node.kids[1]].value;
    if (!exponent.IsInteger() || !fmpz_fits_si(fmpq_numref(exponent.raw()))) return std::nullopt;
    const slong power = fmpz_get_si(fmpq_numref(exponent.raw()));
    if (power > kMaxDegree || power < -kMaxDegree) return std::nullopt;
    auto base = Read(node.kids[0]);
    if (!base.has_value()) return std::nullopt;
    if (power < 0) std::swap(base->num, base->den);
    std::optional<Quotient> out = Checked(*base);
    for (slong i = 1; i < std::abs(power) && out.has_value(); ++i) out = Product(*out, *base);
    if (power == 0) return std::nullopt;  // 1, but for where the base is 0
    return out;
  }

  const Tree& tree_;
  std::string symbol_;
};

// The zeros of an irreducible polynomial as trees; nullopt where they have no such form.
std::optional<std::vector<Ref>> RootsOf(Tree& tree, const fmpz_poly_struct* poly) {
  const slong degree = fmpz_poly_degree(poly);
  const auto coefficient = [&](slong i) {
    Rational value;
    fmpz_poly_get_coeff_fmpz(fmpq_numref(value.mutable_raw()), poly, i);
    return value;
  };
  const auto number = [&](const Rational& value) { return tree.Number(value); };
  const Rational lead = coefficient(degree);
  if (degree == 1) return std::vector<Ref>{number(Rational(0) - coefficient(0) / lead)};
  if (fmpz_poly_num_real_roots(poly) == 0) return std::vector<Ref>();
  const auto root = [&](Ref of, slong index) { return tree.Pow(of, number(Rational(1, index))); };
  // t^2 + p t + q = 0 with different real solutions, the smaller one first.
  const auto quadratic = [&](const Rational& p, const Rational& q) {
    const Rational half = p / Rational(-2);
    const Ref spread = root(number(half * half - q), 2);
    return std::vector<Ref>{tree.Sub(number(half), spread), tree.Add({number(half), spread})};
  };
  if (degree == 2) return quadratic(coefficient(1) / lead, coefficient(0) / lead);
  bool binomial = true;
  for (slong i = 1; i < degree; ++i) binomial = binomial && coefficient(i).Sign() == 0;
  if (binomial) {
    const Rational power = Rational(0) - coefficient(0) / lead;
    const Ref size = root(number(power.Sign() < 0 ? Rational(0) - power : power), degree);
    if (degree % 2 == 1) return std::vector<Ref>{power.Sign() < 0 ? tree.Neg(size) : size};
    return std::vector<Ref>{tree.Neg(size), size};
  }
  if (degree != 4 || coefficient(1).Sign() != 0 || coefficient(3).Sign() != 0) return std::nullopt;
  const Rational p = coefficient(2) / lead;
  const Rational q = coefficient(0) / lead;
  const std::vector<Ref> squares = quadratic(p, q);
  std::vector<Ref> roots;
  const bool positive[] = {q.Sign() > 0 && p.Sign() < 0, q.Sign() < 0 || p.Sign() < 0};
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (!positive[i]) continue;
    roots.push_back(root(squares[i], 2));
    roots.push_back(tree.Neg(roots.back()));
  }
  return roots;
}

class Factors {
 public:
  explicit Factors(const RationalPoly& poly) {
    fmpz_poly_factor_init(factors_);
    fmpz_poly_t whole;
    fmpz_poly_init(whole);
    fmpq_poly_get_numerator(whole, poly.get());
    fmpz_poly_factor(factors_, whole);
    fmpz_poly_clear(whole);
  }
  ~Factors() { fmpz_poly_factor_clear(factors_); }
  Factors(const Factors&) = delete;
  Factors& operator=(const Factors&) = delete;

  slong count() const { return factors_->num; }
  const fmpz_poly_struct* at(slong i) const { return factors_->p + i; }
  slong times(slong i) const { return factors_->exp[i]; }
  // How often `poly` divides; 0 for no factor.
  slong TimesOf(const fmpz_poly_struct* poly) const {
    for (slong i = 0; i < count(); ++i) {
      if (fmpz_poly_equal(at(i), poly) != 0) return times(i);
    }
    return 0;
  }

 private:
  fmpz_poly_factor_t factors_;
};

bool AddPoints(Tree& tree, const fmpz_poly_struct* factor, SignPoint point, std::vector<SignPoint>& out) {
  const auto roots = RootsOf(tree, factor);
  if (!roots.has_value()) return false;
  for (const Ref root : *roots) {
    if (root == kNoRef) return false;
    point.at = root;
    out.push_back(point);
  }
  return true;
}

}  // namespace

std::optional<SignTable> SignsOf(Tree& tree, Ref function) {
  Reader reader(tree);
  const auto quotient = reader.Read(function);
  if (!quotient.has_value() || reader.symbol().empty()) return std::nullopt;
  const auto sign_of = [](const RationalPoly& poly) {
    return poly.zero() ? 0 : fmpz_sgn(fmpq_poly_numref(poly.get()) + poly.degree());
  };
  SignTable table{.symbol = reader.symbol(), .sign = sign_of(quotient->num) * sign_of(quotient->den), .points = {}};
  const Factors den(quotient->den);
  if (quotient->num.zero()) {
    for (slong i = 0; i < den.count(); ++i) {
      if (!AddPoints(tree, den.at(i), {}, table.points)) return std::nullopt;
    }
    return table;
  }
  const Factors num(quotient->num);
  for (slong i = 0; i < num.count(); ++i) {
    const slong below = den.TimesOf(num.at(i));
    const SignPoint point{.at = kNoRef, .defined = below == 0, .flips = (num.times(i) + below) % 2 == 1};
    if (!AddPoints(tree, num.at(i), point, table.points)) return std::nullopt;
  }
  for (slong i = 0; i < den.count(); ++i) {
    if (num.TimesOf(den.at(i)) > 0) continue;
    const SignPoint point{.at = kNoRef, .defined = false, .flips = den.times(i) % 2 == 1};
    if (!AddPoints(tree, den.at(i), point, table.points)) return std::nullopt;
  }
  return table;
}

}  // namespace iha::scoring::math
