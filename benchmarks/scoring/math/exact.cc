#include "benchmarks/scoring/math/exact.h"

#include <flint/fmpq.h>
#include <flint/fmpq_mpoly.h>

#include <algorithm>
#include <map>
#include <optional>

namespace iha::scoring::math {
namespace {

constexpr size_t kMaxIndeterminates = 12;
constexpr slong kMaxProductTerms = 40000;
constexpr slong kMaxGcdTerms = 200;
constexpr int64_t kMaxPower = 300;
constexpr int64_t kMaxGcdPower = 60;

// Sees which indeterminates there are before polynomials over them can be made.
class Indeterminates {
 public:
  explicit Indeterminates(const Tree& tree) : tree_(tree) {}

  void Collect(Ref ref) {
    const Node& node = tree_[ref];
    switch (node.kind) {
      case Kind::kNumber:
        return;
      case Kind::kAdd:
      case Kind::kMul:
        for (const Ref kid : node.kids) Collect(kid);
        return;
      case Kind::kPow:
        if (tree_.Is(node.kids[1], Kind::kNumber)) {
          if (tree_[node.kids[1]].value.IsInteger()) return Collect(node.kids[0]);
          symbols_only_ = false;
          Take(RootKey(ref));
          return;
        }
        break;
      case Kind::kSymbol:
        Take(node.text);
        return;
      case Kind::kConstant:
        if (node.text == "inf" || node.text == "undefined") readable_ = false;
        // A polynomial identity in pi is one in an indeterminate.
        symbols_only_ = symbols_only_ && node.text == "pi";
        Take(tree_.Key(ref));
        return;
      default:
        break;
    }
    symbols_only_ = false;
    Take(tree_.Key(ref));
  }

  // The key of x^(1/q) for the node x^(p/q).
  std::string RootKey(Ref power) const {
    const Node& node = tree_[power];
    const Rational& exponent = tree_[node.kids[1]].value;
    const std::string text = exponent.ToString();
    return "root" + text.substr(text.find('/')) + "(" + tree_.Key(node.kids[0]) + ")";
  }

  const std::map<std::string, slong>& map() const { return map_; }
  bool usable() const { return readable_ && map_.size() <= kMaxIndeterminates; }
  bool symbols_only() const { return symbols_only_; }

 private:
  void Take(const std::string& key) { map_.emplace(key, static_cast<slong>(map_.size())); }

  const Tree& tree_;
  std::map<std::string, slong> map_;
  bool readable_ = true;
  bool symbols_only_ = true;
};

class Context {
 public:
  explicit Context(slong variables) { fmpq_mpoly_ctx_init(ctx_, variables, ORD_LEX); }
  ~Context() { fmpq_mpoly_ctx_clear(ctx_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  const fmpq_mpoly_ctx_struct* get() const { return ctx_; }

 private:
  fmpq_mpoly_ctx_t ctx_;
};

class Poly {
 public:
  explicit Poly(const Context& context) : context_(&context) { fmpq_mpoly_init(poly_, ctx()); }
  Poly(const Poly& other) : Poly(*other.context_) { fmpq_mpoly_set(poly_, other.poly_, ctx()); }
  Poly(Poly&& other) noexcept : Poly(*other.context_) { fmpq_mpoly_swap(poly_, other.poly_, ctx()); }
  Poly& operator=(Poly other) {
    fmpq_mpoly_swap(poly_, other.poly_, ctx());
    return *this;
  }
  ~Poly() { fmpq_mpoly_clear(poly_, ctx()); }

  fmpq_mpoly_struct* get() { return poly_; }
  const fmpq_mpoly_struct* get() const { return poly_; }
  const fmpq_mpoly_ctx_struct* ctx() const { return context_->get(); }
  slong terms() const { return fmpq_mpoly_length(poly_, ctx()); }
  bool zero() const { return fmpq_mpoly_is_zero(poly_, ctx()) != 0; }
  int64_t bits() const {
    const slong integer = fmpz_mpoly_max_bits(poly_->zpoly);
    return std::abs(integer) +
           static_cast<int64_t>(fmpz_bits(fmpq_numref(poly_->content)) + fmpz_bits(fmpq_denref(poly_->content)));
  }

 private:
  const Context* context_;
  fmpq_mpoly_t poly_;
};

struct Fraction {
  Poly num;
  Poly den;
};

class Builder {
 public:
  Builder(const Tree& tree, const Indeterminates& names, const Context& context)
      : tree_(tree), names_(names), context_(context) {}

  std::optional<Fraction> Build(Ref ref) {
    if (ref == kNoRef) return std::nullopt;
    const Node& node = tree_[ref];
    switch (node.kind) {
      case Kind::kNumber:
        return Constant(node.value);
      case Kind::kAdd:
        return BuildSum(node);
      case Kind::kMul:
        return BuildProduct(node);
      case Kind::kPow:
        return BuildPower(ref, node);
      case Kind::kSymbol:
        return Variable(node.text);
      default:
        return Variable(tree_.Key(ref));
    }
  }

  std::optional<Poly> Multiply(const Poly& a, const Poly& b) const {
    if (a.terms() * b.terms() > kMaxProductTerms) return std::nullopt;
    Poly out(context_);
    fmpq_mpoly_mul(out.get(), a.get(), b.get(), context_.get());
    if (!Fits(out)) return std::nullopt;
    return out;
  }

 private:
  bool Fits(const Poly& poly) const {
    return poly.terms() <= tree_.budget().poly_terms && poly.bits() <= 4 * tree_.budget().bignum_bits;
  }

  Poly One() const {
    Poly one(context_);
    fmpq_mpoly_one(one.get(), context_.get());
    return one;
  }

  Fraction Constant(const Rational& value) const {
    Poly num(context_);
    fmpq_mpoly_set_fmpq(num.get(), value.raw(), context_.get());
    return {std::move(num), One()};
  }

  std::optional<Fraction> Variable(const std::string& key) const {
    const auto found = names_.map().find(key);
    if (found == names_.map().end()) return std::nullopt;
    Poly num(context_);
    fmpq_mpoly_gen(num.get(), found->second, context_.get());
    return Fraction{std::move(num), One()};
  }

  std::optional<Fraction> BuildSum(const Node& node) {
    std::optional<Fraction> sum = Constant(Rational(0));
    for (const Ref kid : node.kids) {
      const auto term = Build(kid);
      if (!term.has_value()) return std::nullopt;
      if (fmpq_mpoly_equal(sum->den.get(), term->den.get(), context_.get())) {
        fmpq_mpoly_add(sum->num.get(), sum->num.get(), term->num.get(), context_.get());
      } else {
        const auto left = Multiply(sum->num, term->den);
        const auto right = Multiply(term->num, sum->den);
        auto den = Multiply(sum->den, term->den);
        if (!left.has_value() || !right.has_value() || !den.has_value()) return std::nullopt;
        fmpq_mpoly_add(sum->num.get(), left->get(), right->get(), context_.get());
        sum->den = std::move(*den);
      }
      if (!Fits(sum->num)) return std::nullopt;
    }
    return sum;
  }

  std::optional<Fraction> BuildProduct(const Node& node) {
    std::optional<Fraction> product = Constant(Rational(1));
    for (const Ref kid : node.kids) {
      const auto factor = Build(kid);
      if (!factor.has_value()) return std::nullopt;
      auto num = Multiply(product->num, factor->num);
      auto den = Multiply(product->den, factor->den);
      if (!num.has_value() || !den.has_value()) return std::nullopt;
      product = Fraction{std::move(*num), std::move(*den)};
    }
    return product;
  }

  std::optional<Fraction> BuildPower(Ref ref, const Node& node) {
    if (!tree_.Is(node.kids[1], Kind::kNumber)) return Variable(tree_.Key(ref));
    const fmpq* exponent = tree_[node.kids[1]].value.raw();
    if (!fmpz_fits_si(fmpq_numref(exponent))) return std::nullopt;
    const slong power = fmpz_get_si(fmpq_numref(exponent));
    if (power > kMaxPower || power < -kMaxPower) return std::nullopt;
    auto base = fmpz_is_one(fmpq_denref(exponent)) ? Build(node.kids[0]) : Variable(names_.RootKey(ref));
    if (!base.has_value()) return std::nullopt;
    const auto size = static_cast<ulong>(power < 0 ? -power : power);
    auto num = Power(base->num, size);
    auto den = Power(base->den, size);
    if (!num.has_value() || !den.has_value()) return std::nullopt;
    if (power >= 0) return Fraction{std::move(*num), std::move(*den)};
    if (num->zero()) return std::nullopt;
    return Fraction{std::move(*den), std::move(*num)};
  }

  // By repeated products, each checked: a power of many terms outgrows the budget before it costs.
  std::optional<Poly> Power(const Poly& base, ulong exponent) const {
    Poly out = One();
    if (base.terms() <= 1) {
      if (base.bits() * static_cast<int64_t>(exponent) > 4 * tree_.budget().bignum_bits) return std::nullopt;
      if (!fmpq_mpoly_pow_ui(out.get(), base.get(), exponent, context_.get())) return std::nullopt;
      return out;
    }
    for (ulong i = 0; i < exponent; ++i) {
      auto next = Multiply(out, base);
      if (!next.has_value()) return std::nullopt;
      out = std::move(*next);
    }
    return out;
  }

  const Tree& tree_;
  const Indeterminates& names_;
  const Context& context_;
};

// The numerator without what it shares with the denominator, leading coefficient 1; false when too large.
bool ReduceNumerator(Fraction& fraction, const Context& context, int& sign) {
  const slong terms = std::max(fraction.num.terms(), fraction.den.terms());
  if (fraction.num.zero() || terms > kMaxGcdTerms) return false;
  const slong variables = fmpq_mpoly_ctx_nvars(context.get());
  for (slong v = 0; v < variables; ++v) {
    if (fmpq_mpoly_degree_si(fraction.num.get(), v, context.get()) > kMaxGcdPower) return false;
  }
  if (!fmpq_mpoly_is_fmpq(fraction.den.get(), context.get())) {
    Poly common(context);
    if (!fmpq_mpoly_gcd(common.get(), fraction.num.get(), fraction.den.get(), context.get())) return false;
    Poly quotient(context);
    if (!fmpq_mpoly_divides(quotient.get(), fraction.num.get(), common.get(), context.get())) return false;
    fraction.num = std::move(quotient);
  }
  Rational lead;
  fmpq_mpoly_get_term_coeff_fmpq(lead.mutable_raw(), fraction.num.get(), 0, context.get());
  sign = lead.Sign();
  fmpq_mpoly_make_monic(fraction.num.get(), fraction.num.get(), context.get());
  return true;
}

}  // namespace

Exact CompareExactly(const Tree& tree, Ref a, Ref b) {
  if (a == kNoRef || b == kNoRef) return Exact::kUnknown;
  if (tree.Is(a, Kind::kNumber) && tree.Is(b, Kind::kNumber)) {
    return tree[a].value == tree[b].value ? Exact::kEqual : Exact::kDifferent;
  }
  Indeterminates names(tree);
  names.Collect(a);
  names.Collect(b);
  if (!names.usable()) return Exact::kUnknown;
  const Context context(static_cast<slong>(names.map().size()));
  Builder builder(tree, names, context);
  const auto left = builder.Build(a);
  const auto right = left.has_value() ? builder.Build(b) : std::nullopt;
  if (!right.has_value() || left->den.zero() || right->den.zero()) return Exact::kUnknown;
  const auto x = builder.Multiply(left->num, right->den);
  const auto y = builder.Multiply(right->num, left->den);
  if (!x.has_value() || !y.has_value()) return Exact::kUnknown;
  if (fmpq_mpoly_equal(x->get(), y->get(), context.get())) return Exact::kEqual;
  return names.symbols_only() ? Exact::kDifferent : Exact::kUnknown;
}

Proportion ProportionOf(const Tree& tree, Ref a, Ref b) {
  if (a == kNoRef || b == kNoRef) return Proportion::kUnknown;
  Indeterminates names(tree);
  names.Collect(a);
  names.Collect(b);
  if (!names.usable()) return Proportion::kUnknown;
  const Context context(static_cast<slong>(names.map().size()));
  Builder builder(tree, names, context);
  auto left = builder.Build(a);
  auto right = left.has_value() ? builder.Build(b) : std::nullopt;
  if (!right.has_value()) return Proportion::kUnknown;
  // 0 = 0 says nothing: only the same as itself.
  if (left->num.zero() || right->num.zero()) {
    return left->num.zero() == right->num.zero() ? Proportion::kPositive : Proportion::kNone;
  }
  int left_sign = 1;
  int right_sign = 1;
  if (!ReduceNumerator(*left, context, left_sign) || !ReduceNumerator(*right, context, right_sign)) {
    return Proportion::kUnknown;
  }
  if (fmpq_mpoly_equal(left->num.get(), right->num.get(), context.get())) {
    return left_sign == right_sign ? Proportion::kPositive : Proportion::kNegative;
  }
  return names.symbols_only() ? Proportion::kNone : Proportion::kUnknown;
}

}  // namespace iha::scoring::math
